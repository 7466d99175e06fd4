// Pooling over windows.
#pragma once
#include "strata/nn/conv.h"

namespace strata::nn {

template <size_t N>
struct PoolOptions {
  std::optional<PerDim<N>> stride;  // none: the window's size
  PerDim<N> padding = 0, dilation = 1;
  bool ceil_mode = false;
};
using MaxPool2dOptions = PoolOptions<2>;

// The largest of each window of the last two dims.
class MaxPool2dImpl : public Module {
 public:
  explicit MaxPool2dImpl(PerDim<2> kernel_size, MaxPool2dOptions options = {})
      : kernel_size(kernel_size), options(options) {}
  Tensor forward(const Tensor& input) override {
    return ops::max_pool2d(input, kernel_size, options.stride.value_or(kernel_size), options.padding, options.dilation,
                           options.ceil_mode);
  }
  const PerDim<2> kernel_size;
  const MaxPool2dOptions options;
};
STRATA_MODULE(MaxPool2d);

}  // namespace strata::nn
