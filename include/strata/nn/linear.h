// Identity, Linear, Bilinear, Flatten, Unflatten.
#pragma once
#include "strata/nn/activation.h"
#include "strata/nn/sizes.h"

namespace strata::nn {

STRATA_LAYER(Identity, input);
// The dims start_dim to end_dim as one.
STRATA_LAYER_2(Flatten, int64_t, start_dim, 1, int64_t, end_dim, -1, ops::flatten(input, start_dim, end_dim));

// Dim `dim` as several, one of whose sizes may be -1.
class UnflattenImpl : public Module {
 public:
  UnflattenImpl(int64_t dim, Sizes unflattened_size) : dim(dim), unflattened_size(std::move(unflattened_size)) {}
  Tensor forward(const Tensor& input) override { return ops::unflatten(input, dim, unflattened_size); }
  const int64_t dim;
  const Sizes unflattened_size;
};
STRATA_MODULE(Unflatten);

// input @ weight.T + bias: (*, in_features) to (*, out_features), weight of (out_features, in_features). Initially
// uniform in +-1 / sqrt(in_features).
class LinearImpl : public Module {
 public:
  LinearImpl(int64_t in_features, int64_t out_features, bool bias = true, DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override { return ops::linear(input, weight, bias); }
  void reset_parameters();
  const int64_t in_features, out_features;
  Tensor weight, bias;  // bias is undefined where there is none
};
STRATA_MODULE(Linear);

// x1 @ weight[k] @ x2 + bias[k] for each output k; initially uniform in +-1 / sqrt(in1_features).
class BilinearImpl : public Module {
 public:
  using Module::forward;
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features, bool bias = true,
               DType dtype = default_dtype());
  Tensor forward(const Tensor& input1, const Tensor& input2) { return ops::bilinear(input1, input2, weight, bias); }
  void reset_parameters();
  Tensor weight, bias;
};
STRATA_MODULE(Bilinear);

}  // namespace strata::nn
