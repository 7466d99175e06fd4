// Adam (Kingma and Ba, arXiv:1412.6980) and AdamW (Loshchilov and Hutter, arXiv:1711.05101).
#pragma once
#include "strata/optim/optimizer.h"

namespace strata::optim {

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};

// m and v are running means of grad and grad^2; p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps). weight_decay is
// added to the gradient.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, AdamOptions options = {})
      : Adam(std::move(parameters), options, false) {}

 protected:
  Adam(std::vector<Tensor> parameters, AdamOptions options, bool decoupled);

 private:
  void update(const std::vector<size_t>& which, const std::vector<Tensor>& params,
              const std::vector<Tensor>& grads) override;
  const AdamOptions options_;
  const bool decoupled_;
  struct State {
    Tensor step, mean, square, most;
  };
  std::vector<State> states_;  // by parameter; made at its first gradient
};

struct AdamWOptions : AdamOptions {
  AdamWOptions() { weight_decay = 1e-2; }
  AdamWOptions(double rate, double decay = 1e-2) {
    lr = rate;
    weight_decay = decay;
  }
};

// Adam whose weight decay is p -= lr weight_decay p, before the update.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> parameters, AdamWOptions options = {})
      : Adam(std::move(parameters), options, true) {}
};

}  // namespace strata::optim
