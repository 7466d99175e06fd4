// Optimisers, schedules, limits on gradients. In the texts p is the list of parameters and o the optimiser.
#include <cstdio>

#include "harness.h"

// An optimiser of all parameters.
#define OPTIMIZER(PYTHON, NAME, ...)                                                                   \
  harness::optimizer_case(PYTHON, [](const harness::Tensors& p) -> std::unique_ptr<optim::Optimizer> { \
    return std::make_unique<optim::NAME>(p, optim::NAME##Options{__VA_ARGS__});                        \
  })
// A schedule made by NAME(o, arguments).
#define SCHEDULE(PYTHON, NAME, ...)                                                    \
  harness::schedule_case(PYTHON, [](optim::Optimizer& o) -> std::function<void(int)> { \
    return [s = std::make_shared<optim::NAME>(o, __VA_ARGS__)](int) { s->step(); };    \
  })

void harness::optimizers() {
  OPTIMIZER("optim.SGD(p, lr=0.1)", SGD, .lr = 0.1);
  OPTIMIZER("optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01)", SGD, .lr = 0.1, .momentum = 0.9,
            .dampening = 0.1, .weight_decay = 0.01);
  OPTIMIZER("optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True)", SGD, .lr = 0.1, .momentum = 0.9,
            .nesterov = true, .maximize = true);
  OPTIMIZER("optim.ASGD(p, lambd=0.1, t0=2)", ASGD, .lambd = 0.1, .t0 = 2);
  OPTIMIZER("optim.Rprop(p)", Rprop, );
  OPTIMIZER("optim.Adam(p)", Adam, );
  OPTIMIZER("optim.Adam(p, lr=0.1, betas=(0.8, 0.9), weight_decay=0.1, amsgrad=True)", Adam, .lr = 0.1, .beta1 = 0.8,
            .beta2 = 0.9, .weight_decay = 0.1, .amsgrad = true);
  OPTIMIZER("optim.AdamW(p, lr=0.1, weight_decay=0.2)", AdamW, 0.1, 0.2);
  OPTIMIZER("optim.Adamax(p, weight_decay=0.1)", Adamax, .weight_decay = 0.1);
  OPTIMIZER("optim.NAdam(p, decoupled_weight_decay=True, weight_decay=0.1)", NAdam, .weight_decay = 0.1,
            .decoupled_weight_decay = true);
  OPTIMIZER("optim.RAdam(p, lr=0.1)", RAdam, .lr = 0.1);
  OPTIMIZER("optim.Adagrad(p, lr_decay=0.1, initial_accumulator_value=0.5)", Adagrad, .lr_decay = 0.1,
            .initial_accumulator_value = 0.5);
  OPTIMIZER("optim.Adadelta(p)", Adadelta, );
  OPTIMIZER("optim.RMSprop(p)", RMSprop, );
  OPTIMIZER("optim.RMSprop(p, momentum=0.9, centered=True, weight_decay=0.1)", RMSprop, .weight_decay = 0.1,
            .momentum = 0.9, .centered = true);
  OPTIMIZER("optim.Adafactor(p)", Adafactor, );
  optimizer_case("optim.Muon([q for q in p if q.dim() == 2], lr=0.1)", [](const Tensors& p) {
    return std::make_unique<optim::Muon>(Tensors{p[0], p[2]}, optim::MuonOptions{.lr = 0.1});
  });
  optimizer_case("optim.Adam([{'params': p[:1], 'lr': 0.1}, {'params': p[1:], 'betas': (0.5, 0.6)}])",
                 [](const Tensors& p) {
                   const Tensors first(p.begin(), p.begin() + 1), rest(p.begin() + 1, p.end());
                   return std::make_unique<optim::Adam>(std::vector<optim::ParamGroup<optim::AdamOptions>>{
                       {first, {.lr = 0.1}}, {rest, {.beta1 = 0.5, .beta2 = 0.6}}});
                 });

  SCHEDULE("lr_scheduler.StepLR(o, 3)", StepLR, 3);
  SCHEDULE("lr_scheduler.MultiStepLR(o, [2, 5, 5, 9], 0.3)", MultiStepLR, std::vector<int64_t>{2, 5, 5, 9}, 0.3);
  SCHEDULE("lr_scheduler.ConstantLR(o, 0.3, 4)", ConstantLR, 0.3, 4);
  SCHEDULE("lr_scheduler.LinearLR(o, 0.3, 0.9, 7)", LinearLR, 0.3, 0.9, 7);
  SCHEDULE("lr_scheduler.ExponentialLR(o, 0.9)", ExponentialLR, 0.9);
  SCHEDULE("lr_scheduler.PolynomialLR(o, 8, 1.5)", PolynomialLR, 8, 1.5);
  SCHEDULE("lr_scheduler.CosineAnnealingLR(o, 6, 0.01)", CosineAnnealingLR, 6, 0.01);
  SCHEDULE("lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)", CosineAnnealingWarmRestarts, 3, 2, 0.01);
  SCHEDULE("lr_scheduler.LambdaLR(o, lambda k: 1 / (k + 1))", LambdaLR, [](int64_t k) { return 1.0 / double(k + 1); });
  SCHEDULE("lr_scheduler.MultiplicativeLR(o, lambda k: 1 / (k + 1))", MultiplicativeLR,
           [](int64_t k) { return 1.0 / double(k + 1); });
  SCHEDULE("lr_scheduler.OneCycleLR(o, 0.7, 25, cycle_momentum=False)", OneCycleLR, 0.7, 25);
  SCHEDULE("lr_scheduler.OneCycleLR(o, 0.7, 21, cycle_momentum=False, anneal_strategy='linear', three_phase=True)",
           OneCycleLR, 0.7, 21, optim::OneCycleOptions{.linear = true, .three_phase = true});
  schedule_case(
      "lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.1, 1.0, 4), lr_scheduler.ExponentialLR(o, 0.8), "
      "lr_scheduler.CosineAnnealingLR(o, 5)], [5, 12])",
      [](optim::Optimizer& o) -> std::function<void(int)> {
        std::vector<std::shared_ptr<optim::LRScheduler>> all;
        all.push_back(std::make_shared<optim::LinearLR>(o, 0.1, 1.0, 4));
        all.push_back(std::make_shared<optim::ExponentialLR>(o, 0.8));
        all.push_back(std::make_shared<optim::CosineAnnealingLR>(o, 5));
        return [s = std::make_shared<optim::SequentialLR>(o, all, std::vector<int64_t>{5, 12})](int) { s->step(); };
      });
  schedule_case("lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1, min_lr=0.02)",
                [](optim::Optimizer& o) -> std::function<void(int)> {
                  const optim::ReduceLROnPlateauOptions options{
                      .factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.02};
                  return [s = std::make_shared<optim::ReduceLROnPlateau>(o, options)](int k) { s->step((k * 7) % 5); };
                });

  std::printf("clip |\n");
  strata::manual_seed(7);
  for (double limit : {0.5, 100.0}) {
    const Tensors p = drawn("f:3,4 f:5");
    (p[0].square().sum() + p[1].square().sum()).backward();
    put("norm", nn::utils::clip_grad_norm_(p, limit));
    put("clipped", p[0].grad());
    nn::utils::clip_grad_value_(p, 0.05);
    put("limited", p[1].grad());
  }
}
