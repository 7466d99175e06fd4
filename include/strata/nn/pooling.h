// Pooling over windows of (N, C, spatial...) or (C, spatial...), and its partial inverse.
#pragma once
#include "strata/nn/module.h"
#include "strata/nn/sizes.h"

namespace strata::nn {

template <size_t N>
struct MaxPoolOptions {
  std::optional<PerDim<N>> stride;  // none: the window's size
  PerDim<N> padding = 0, dilation = 1;
  bool ceil_mode = false;
};
template <size_t N>
class MaxPoolImpl : public Module {
 public:
  explicit MaxPoolImpl(PerDim<N> kernel_size, MaxPoolOptions<N> options = {})
      : kernel_size(kernel_size), options(options) {}
  Tensor forward(const Tensor& input) override;
  // The maxima and where each stands, counted over the last N dims.
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
  const PerDim<N> kernel_size;
  const MaxPoolOptions<N> options;
};

// (N, C, spatial...) of zeros with the values at the indices that forward_with_indices() gave. output_size chooses
// among the sizes that pool to the input's.
template <size_t N>
class MaxUnpoolImpl : public Module {
 public:
  using Module::forward;
  explicit MaxUnpoolImpl(PerDim<N> kernel_size, std::optional<PerDim<N>> stride = {}, PerDim<N> padding = 0)
      : kernel_size(kernel_size), stride(stride.value_or(kernel_size)), padding(padding) {}
  Tensor forward(const Tensor& input, const Tensor& indices, const std::vector<int64_t>& output_size = {});
  const PerDim<N> kernel_size, stride, padding;
};

template <size_t N>
struct AvgPoolOptions {
  std::optional<PerDim<N>> stride;
  PerDim<N> padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  std::optional<int64_t> divisor_override;  // not in one dim
};
template <size_t N>
class AvgPoolImpl : public Module {
 public:
  explicit AvgPoolImpl(PerDim<N> kernel_size, AvgPoolOptions<N> options = {});
  Tensor forward(const Tensor& input) override;
  const PerDim<N> kernel_size;
  const AvgPoolOptions<N> options;
};

// (sum over windows of x ** norm_type) ** (1 / norm_type).
template <size_t N>
class LPPoolImpl : public Module {
 public:
  LPPoolImpl(double norm_type, PerDim<N> kernel_size, std::optional<PerDim<N>> stride = {}, bool ceil_mode = false)
      : norm_type(norm_type), kernel_size(kernel_size), stride(stride), ceil_mode(ceil_mode) {}
  Tensor forward(const Tensor& input) override;
  const double norm_type;
  const PerDim<N> kernel_size;
  const std::optional<PerDim<N>> stride;
  const bool ceil_mode;
};

// Windows chosen so that the last N dims become output_size; -1 keeps a dim.
template <size_t N>
class AdaptiveAvgPoolImpl : public Module {
 public:
  explicit AdaptiveAvgPoolImpl(PerDim<N> output_size) : output_size(output_size) {}
  Tensor forward(const Tensor& input) override;
  const PerDim<N> output_size;
};
template <size_t N>
class AdaptiveMaxPoolImpl : public Module {
 public:
  explicit AdaptiveMaxPoolImpl(PerDim<N> output_size) : output_size(output_size) {}
  Tensor forward(const Tensor& input) override { return std::get<0>(forward_with_indices(input)); }
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
  const PerDim<N> output_size;
};

// One of the two has to be given: sizes, or ratios between 0 and 1 of the input's.
template <size_t N>
struct FractionalMaxPoolOptions {
  std::optional<PerDim<N>> output_size;
  std::optional<PerDim<N, double>> output_ratio;
};
// Windows begin at places that random numbers choose (Graham, 2014).
template <size_t N>
class FractionalMaxPoolImpl : public Module {
 public:
  FractionalMaxPoolImpl(PerDim<N> kernel_size, FractionalMaxPoolOptions<N> options);
  Tensor forward(const Tensor& input) override { return std::get<0>(forward_with_indices(input)); }
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
  const PerDim<N> kernel_size;
  const FractionalMaxPoolOptions<N> options;
};

#define STRATA_POOL(NAME, N)            \
  using NAME##N##dImpl = NAME##Impl<N>; \
  STRATA_MODULE(NAME##N##d)
#define STRATA_POOLS(N)                           \
  using MaxPool##N##dOptions = MaxPoolOptions<N>; \
  using AvgPool##N##dOptions = AvgPoolOptions<N>; \
  STRATA_POOL(MaxPool, N);                        \
  STRATA_POOL(MaxUnpool, N);                      \
  STRATA_POOL(AvgPool, N);                        \
  STRATA_POOL(LPPool, N);                         \
  STRATA_POOL(AdaptiveAvgPool, N);                \
  STRATA_POOL(AdaptiveMaxPool, N)
STRATA_POOLS(1);
STRATA_POOLS(2);
STRATA_POOLS(3);
using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;
STRATA_POOL(FractionalMaxPool, 2);
STRATA_POOL(FractionalMaxPool, 3);
#undef STRATA_POOLS
#undef STRATA_POOL

}  // namespace strata::nn
