// Activations and dropout.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

// Modules that are one operator of one tensor.
#define STRATA_ACTIVATION(NAME, CALL)                                  \
  class NAME##Impl : public Module {                                   \
   public:                                                             \
    Tensor forward(const Tensor& input) override { return ops::CALL; } \
  };                                                                   \
  STRATA_MODULE(NAME)

STRATA_ACTIVATION(ReLU, relu(input));
STRATA_ACTIVATION(Sigmoid, sigmoid(input));
STRATA_ACTIVATION(Tanh, tanh(input));
STRATA_ACTIVATION(GELU, gelu(input));
STRATA_ACTIVATION(SiLU, silu(input));
#undef STRATA_ACTIVATION

// Zeroes elements with probability p in training, and divides the others by 1 - p.
class DropoutImpl : public Module {
 public:
  explicit DropoutImpl(double p = 0.5) : p(p) {
    STRATA_CHECK_VALUE(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  }
  Tensor forward(const Tensor& input) override { return ops::dropout(input, p, is_training()); }
  const double p;
};
STRATA_MODULE(Dropout);

}  // namespace strata::nn
