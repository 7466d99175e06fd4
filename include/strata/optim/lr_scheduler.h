// Schedules of the learning rates: each sets those of the first step when it is made, and those of the next one by
// step(). They begin at the rates that the optimiser had before its first schedule, and compute each rate from the one
// before, so that several can work on one optimiser.
#pragma once
#include <functional>

#include "strata/optim/optimizer.h"

namespace strata::optim {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  virtual void step() { move_to(last_epoch_ + 1, false); }
  int64_t last_epoch() const { return last_epoch_; }
  Optimizer& optimizer() const { return optimizer_; }

 protected:
  friend class SequentialLR;
  explicit LRScheduler(Optimizer& optimizer);
  // A group's rate at last_epoch(), from its present one and from the one that it began with.
  virtual double rate(double present, double base, size_t group) = 0;
  // The same from the latter alone, where a schedule can say it: for a jump to an epoch.
  virtual double closed_rate(double present, double base, size_t group) { return rate(present, base, group); }
  virtual void begin();  // a subclass's constructor ends with it
  void move_to(int64_t epoch, bool closed);
  int64_t last_epoch_ = -1;
  bool initial_ = false;  // it sets the first step's rates

 private:
  Optimizer& optimizer_;
  std::vector<double> base_;
};

// NAME(optimizer, arguments): what it is made of, and the two forms of its rate.
#define STRATA_SCHEDULE(NAME)                                      \
 private:                                                          \
  double rate(double present, double base, size_t group) override; \
  double closed_rate(double present, double base, size_t group) override

// Times gamma every step_size epochs.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);
  STRATA_SCHEDULE(StepLR);
  const int64_t step_size_;
  const double gamma_;
};

// Times gamma at each of the epochs in milestones.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);
  STRATA_SCHEDULE(MultiStepLR);
  const std::vector<int64_t> milestones_;
  const double gamma_;
};

// Times factor until epoch total_iters.
class ConstantLR final : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);
  STRATA_SCHEDULE(ConstantLR);
  const double factor_;
  const int64_t total_iters_;
};

// Factor from start_factor to end_factor in total_iters even steps.
class LinearLR final : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1,
                    int64_t total_iters = 5);
  STRATA_SCHEDULE(LinearLR);
  const double start_factor_, end_factor_;
  const int64_t total_iters_;
};

// Times gamma every epoch.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);
  STRATA_SCHEDULE(ExponentialLR);
  const double gamma_;
};

// (1 - epoch / total_iters)^power of the initial rate, 0 from total_iters on.
class PolynomialLR final : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);
  STRATA_SCHEDULE(PolynomialLR);
  const int64_t total_iters_;
  const double power_;
};

// Half a cosine from the initial rate to eta_min in T_max epochs, and back in as many: arXiv:1608.03983.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);
  STRATA_SCHEDULE(CosineAnnealingLR);
  const int64_t period_;
  const double least_;
};

// Half a cosine from the initial rate to eta_min in T_0 epochs, then again, each period T_mult times as long.
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0);

 private:
  double rate(double present, double base, size_t group) override;
  const int64_t first_, times_;
  const double least_;
};

// The initial rate, or the present one, times what the function gives of the epoch.
class LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda);

 private:
  double rate(double present, double base, size_t group) override;
  const std::function<double(int64_t)> lr_lambda_;
};
class MultiplicativeLR final : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda);

 private:
  double rate(double present, double base, size_t group) override;
  const std::function<double(int64_t)> lr_lambda_;
};

struct OneCycleOptions {
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
  bool linear = false;       // not by cosines
  bool three_phase = false;  // down to the initial rate first, then to the end
};

// From max_lr / div_factor up to max_lr, then down to the initial rate / final_div_factor (Smith and Topin,
// arXiv:1708.07120): Python's with cycle_momentum=False. More steps than total_steps raise Value.
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, OneCycleOptions options = {});

 private:
  double rate(double present, double base, size_t group) override;
  const double max_lr_;
  const int64_t total_steps_;
  const OneCycleOptions options_;
};

// schedulers[i] from epoch milestones[i - 1] on, each counting from 0.
class SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  void step() override;

 private:
  double rate(double present, double, size_t) override { return present; }
  const std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  const std::vector<int64_t> milestones_;
};

struct ReduceLROnPlateauOptions {
  bool max = false;  // of the metric, not its least value
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  bool absolute = false;  // the threshold; else relative
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};

// Times factor once the metric has not improved for more than `patience` steps.
class ReduceLROnPlateau final {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  void step(double metric);

 private:
  Optimizer& optimizer_;
  const ReduceLROnPlateauOptions options_;
  double best_;
  int64_t waiting_ = 0, bad_ = 0;
};
#undef STRATA_SCHEDULE

}  // namespace strata::optim
