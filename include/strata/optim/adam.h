// Adam (Kingma and Ba, arXiv:1412.6980), AdamW (Loshchilov and Hutter, arXiv:1711.05101), Adamax (the first, section
// 7), NAdam (Dozat, ICLR workshop 2016), RAdam (Liu et al., arXiv:1908.03265).
#pragma once
#include "strata/optim/optimizer.h"

namespace strata::optim {

// m and v are running means of grad and grad^2; p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps). weight_decay is
// added to the gradient.
struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
STRATA_OPTIMIZER(Adam);

// Adam whose weight decay is p -= lr weight_decay p, before the update.
struct AdamWOptions : AdamOptions {
  AdamWOptions() { weight_decay = 1e-2; }
  AdamWOptions(double rate, double decay = 1e-2) {
    lr = rate;
    weight_decay = decay;
  }
};
STRATA_OPTIMIZER(AdamW);

// m is a running mean of grad, u = max(b2 u, |grad| + eps); p -= lr / (1 - b1^t) m / u.
struct AdamaxOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
};
STRATA_OPTIMIZER(Adamax);

// Adam with Nesterov's momentum, whose factor is b1 (1 - 0.96^(t momentum_decay) / 2).
struct NAdamOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;
};
STRATA_OPTIMIZER(NAdam,
                 Tensor new_buffer(size_t group, const std::string& name, const Tensor& parameter) const override;);

// Adam whose division by sqrt(v) begins, rectified, once v's estimate has a bounded variance.
struct RAdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;
};
STRATA_OPTIMIZER(RAdam);

}  // namespace strata::optim
