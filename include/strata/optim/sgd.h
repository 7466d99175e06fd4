// Stochastic gradient descent with momentum; Nesterov's form: Sutskever et al., ICML 2013. Its mean over steps: Polyak
// and Juditsky, 1992, by Bottou's schedule, 2010. Resilient propagation: Riedmiller and Braun, 1993.
#pragma once
#include <array>

#include "strata/optim/optimizer.h"

namespace strata::optim {

// d = grad + weight_decay p; buf = momentum buf + (1 - dampening) d, at first d; p -= lr buf.
struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
STRATA_OPTIMIZER(SGD, bool counts_steps() const override { return false; });

// p = (1 - lambd eta) p - eta grad with eta = lr / (1 + lambd lr t)^alpha; "ax" is the mean of p from step t0 on.
struct ASGDOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;
};
STRATA_OPTIMIZER(ASGD,
                 Tensor new_buffer(size_t group, const std::string& name, const Tensor& parameter) const override;);

// Each element has a step size of its own: larger (by grow) while the gradient keeps its sign, smaller where it turns.
struct RpropOptions {
  double lr = 1e-2, shrink = 0.5, grow = 1.2, least = 1e-6, largest = 50;
  bool maximize = false;
};
STRATA_OPTIMIZER(Rprop,
                 Tensor new_buffer(size_t group, const std::string& name, const Tensor& parameter) const override;);

// Momentum whose updates are made orthogonal (Jordan et al., 2024): for matrices between layers.
struct MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  bool match_rms_adamw = false;
};
STRATA_OPTIMIZER(Muon, bool counts_steps() const override { return false; });

}  // namespace strata::optim
