// Identity, Linear, Flatten.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

class IdentityImpl : public Module {
 public:
  Tensor forward(const Tensor& input) override { return input; }
};
STRATA_MODULE(Identity);

// input @ weight.T + bias: (*, in_features) to (*, out_features), weight of (out_features, in_features). Initially
// uniform in +-1 / sqrt(in_features).
class LinearImpl : public Module {
 public:
  LinearImpl(int64_t in_features, int64_t out_features, bool bias = true, DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override { return ops::linear(input, weight, bias); }
  void reset_parameters();
  Tensor weight, bias;  // bias is undefined where there is none
};
STRATA_MODULE(Linear);

// The dims start_dim to end_dim as one.
class FlattenImpl : public Module {
 public:
  explicit FlattenImpl(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim(start_dim), end_dim(end_dim) {}
  Tensor forward(const Tensor& input) override { return ops::flatten(input, start_dim, end_dim); }
  const int64_t start_dim, end_dim;
};
STRATA_MODULE(Flatten);

}  // namespace strata::nn
