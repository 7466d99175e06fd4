// Steps by the fused operators of the table.
#include "strata/optim/optim.h"

namespace strata::optim {

SGD::SGD(std::vector<Tensor> parameters, SGDOptions options)
    : Optimizer(std::move(parameters), options.lr), options_(options), buffers_(this->parameters().size()) {
  STRATA_CHECK_VALUE(options.momentum >= 0, "SGD: expected a momentum of at least 0, got ", options.momentum);
  STRATA_CHECK_VALUE(options.weight_decay >= 0, "SGD: expected a weight decay of at least 0, got ",
                     options.weight_decay);
  STRATA_CHECK_VALUE(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                     "SGD: Nesterov's form needs a momentum and no dampening");
}

void SGD::update(const std::vector<size_t>& which, const std::vector<Tensor>& params,
                 const std::vector<Tensor>& grads) {
  if (options_.momentum == 0) return call(params, grads, {}, false);
  for (bool first : {false, true}) {
    std::vector<Tensor> p, g, b;
    std::vector<size_t> made;
    for (size_t k = 0; k < which.size(); ++k) {
      Tensor& buffer = buffers_[which[k]];
      if (buffer.defined() == first) continue;
      if (first) made.push_back(which[k]);
      p.push_back(params[k]);
      g.push_back(grads[k]);
      b.push_back(first ? ops::empty_like(grads[k]) : buffer);
    }
    if (p.empty()) continue;
    call(p, g, b, first);
    for (size_t k = 0; k < made.size(); ++k) buffers_[made[k]] = b[k];
  }
}

void SGD::call(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& buffers,
               bool first) {
  const SGDOptions& o = options_;
  ops::_fused_sgd_(params, grads, buffers, o.weight_decay, o.momentum, lr(), o.dampening, o.nesterov, o.maximize, first,
                   {}, {});
}

Adam::Adam(std::vector<Tensor> parameters, AdamOptions options, bool decoupled)
    : Optimizer(std::move(parameters), options.lr),
      options_(options),
      decoupled_(decoupled),
      states_(this->parameters().size()) {
  for (double beta : {options.beta1, options.beta2})
    STRATA_CHECK_VALUE(beta >= 0 && beta < 1, "Adam: expected betas from 0 to below 1, got ", beta);
  STRATA_CHECK_VALUE(options.eps >= 0 && options.weight_decay >= 0,
                     "Adam: expected eps and weight decay of at least 0, got ", options.eps, " and ",
                     options.weight_decay);
}

void Adam::update(const std::vector<size_t>& which, const std::vector<Tensor>& params,
                  const std::vector<Tensor>& grads) {
  std::vector<Tensor> means, squares, most, steps;
  for (size_t k = 0; k < which.size(); ++k) {
    State& s = states_[which[k]];
    if (!s.step.defined()) {
      s.step = ops::zeros({}, DType::F32, params[k].device());
      s.mean = ops::zeros_like(params[k]);
      s.square = ops::zeros_like(params[k]);
      if (options_.amsgrad) s.most = ops::zeros_like(params[k]);
    }
    steps.push_back(s.step);
    means.push_back(s.mean);
    squares.push_back(s.square);
    if (options_.amsgrad) most.push_back(s.most);
  }
  ops::_foreach_add_(steps, Scalar(1));
  const AdamOptions& o = options_;
  const auto step = [&](auto& op) {
    op(params, grads, means, squares, most, steps, lr(), o.beta1, o.beta2, o.weight_decay, o.eps, o.amsgrad, o.maximize,
       Tensor(), Tensor());
  };
  using Step = void(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, double, double, double,
                    double, double, bool, bool, const Tensor&, const Tensor&);
  step(decoupled_ ? static_cast<Step&>(ops::_fused_adamw_) : static_cast<Step&>(ops::_fused_adam_));
}

}  // namespace strata::optim
