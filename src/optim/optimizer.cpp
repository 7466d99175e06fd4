#include "strata/optim/optimizer.h"

#include <algorithm>
#include <set>

namespace strata::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr) : parameters_(std::move(parameters)) {
  STRATA_CHECK_VALUE(!parameters_.empty(), "optimizer got an empty parameter list");
  std::set<const void*> seen;
  for (const Tensor& p : parameters_) {
    STRATA_CHECK_VALUE(p.defined() && p.is_leaf(), "optimizer: expected leaf tensors, got one that is computed");
    STRATA_CHECK_VALUE(seen.insert(p.impl()).second, "optimizer: a parameter is there twice");
  }
  set_lr(lr);
}

void Optimizer::set_lr(double lr) {
  STRATA_CHECK_VALUE(lr >= 0, "optimizer: expected a learning rate of at least 0, got ", lr);
  lr_ = lr;
}

void Optimizer::step() {
  const NoGradGuard off;
  std::vector<std::vector<size_t>> kinds;  // of one dtype and device each
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const Tensor& p = parameters_[k];
    if (!p.requires_grad() || !p.grad().defined()) continue;
    const auto alike = [&](const std::vector<size_t>& kind) {
      const Tensor& other = parameters_[kind[0]];
      return other.dtype() == p.dtype() && other.device() == p.device();
    };
    const auto at = std::find_if(kinds.begin(), kinds.end(), alike);
    if (at == kinds.end())
      kinds.push_back({k});
    else
      at->push_back(k);
  }
  for (const std::vector<size_t>& which : kinds) {
    std::vector<Tensor> params, grads;
    for (size_t k : which) {
      params.push_back(parameters_[k]);
      grads.push_back(parameters_[k].grad());
    }
    update(which, params, grads);
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters_) {
    const Tensor g = p.grad();
    if (!g.defined()) continue;
    set_grad(p, set_to_none ? Tensor() : ops::zeros_like(g));
  }
}

}  // namespace strata::optim
