// Convolutions in one to three dims. Inputs are (N, C, spatial...) or (C, spatial...).
#pragma once
#include <array>

#include "strata/nn/module.h"

namespace strata::nn {

// A number for every spatial dim, or one for all.
template <size_t N>
struct PerDim : std::array<int64_t, N> {
  PerDim(int64_t all) { this->fill(all); }
  PerDim(std::initializer_list<int64_t> each) {
    STRATA_CHECK_VALUE(each.size() == N, "expected ", N, " numbers, one a spatial dim, got ", each.size());
    std::copy(each.begin(), each.end(), this->begin());
  }
  operator IntArrayRef() const { return {this->data(), N}; }
};

template <size_t N>
struct ConvOptions {
  PerDim<N> stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  DType dtype = default_dtype();
};

// Weight of (out_channels, in_channels / groups, kernel...), initially uniform in +-1 / sqrt(what one output sums).
template <size_t N>
class ConvImpl : public Module {
 public:
  ConvImpl(int64_t in_channels, int64_t out_channels, PerDim<N> kernel_size, ConvOptions<N> options = {});
  Tensor forward(const Tensor& input) override;
  void reset_parameters();
  const ConvOptions<N> options;
  Tensor weight, bias;
};

using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;
using Conv1dImpl = ConvImpl<1>;
using Conv2dImpl = ConvImpl<2>;
using Conv3dImpl = ConvImpl<3>;
STRATA_MODULE(Conv1d);
STRATA_MODULE(Conv2d);
STRATA_MODULE(Conv3d);

}  // namespace strata::nn
