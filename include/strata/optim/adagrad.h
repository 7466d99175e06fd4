// Rates by the size of past gradients: Adagrad (Duchi et al., JMLR 12, 2011), Adadelta (Zeiler, arXiv:1212.5701),
// RMSprop (Hinton's lecture 6e; centred: arXiv:1308.0850), Adafactor (Shazeer and Stern, arXiv:1804.04235).
#pragma once
#include "strata/optim/optimizer.h"

namespace strata::optim {

// sum += grad^2; p -= lr / (1 + (t - 1) lr_decay) grad / (sqrt(sum) + eps).
struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
STRATA_OPTIMIZER(Adagrad,
                 Tensor new_buffer(size_t group, const std::string& name, const Tensor& parameter) const override;);

// delta = sqrt(u + eps) / sqrt(v + eps) grad with v, u running means of grad^2, delta^2; p -= lr delta.
struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
STRATA_OPTIMIZER(Adadelta);

// v is a running mean of grad^2, less the square of one of grad where centered; p -= lr grad / (sqrt(v) + eps), with
// momentum of that.
struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
STRATA_OPTIMIZER(RMSprop);

// Second moments of matrices as a product of row and column means. lr: the largest relative step. eps1: the least
// second moment (none: the dtype's epsilon). eps2: the least size of a parameter that scales its step. d: where updates
// are clipped.
struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  std::optional<double> eps1;
  double eps2 = 1e-3, d = 1, weight_decay = 0;
  bool maximize = false;
};
STRATA_OPTIMIZER(Adafactor,
                 Tensor new_buffer(size_t group, const std::string& name, const Tensor& parameter) const override;);

}  // namespace strata::optim
