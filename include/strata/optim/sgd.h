// Stochastic gradient descent with momentum; Nesterov's form: Sutskever et al., ICML 2013.
#pragma once
#include "strata/optim/optimizer.h"

namespace strata::optim {

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};

// d = grad + weight_decay p; buf = momentum buf + (1 - dampening) d, at first d; p -= lr buf.
class SGD final : public Optimizer {
 public:
  SGD(std::vector<Tensor> parameters, SGDOptions options = {});

 private:
  void update(const std::vector<size_t>& which, const std::vector<Tensor>& params,
              const std::vector<Tensor>& grads) override;
  void call(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& buffers,
            bool first);
  const SGDOptions options_;
  std::vector<Tensor> buffers_;  // by parameter; undefined before its first step
};

}  // namespace strata::optim
