// Convolutions in one to three dims, forward and transposed. Inputs are (N, C, spatial...) or (C, spatial...).
#pragma once
#include <string>

#include "strata/nn/module.h"
#include "strata/nn/sizes.h"

namespace strata::nn {

// Numbers, or "same" (by dilation * (kernel - 1) in all, the odd element at the end) or "valid" (none).
template <size_t N>
struct ConvPadding : PerDim<N> {
  using PerDim<N>::PerDim;
  ConvPadding(const char* word) : PerDim<N>(0), word(word) {}
  std::string word;
};

template <size_t N>
struct ConvOptions {
  PerDim<N> stride = 1;
  ConvPadding<N> padding = 0;
  PerDim<N> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // or "reflect", "replicate", "circular"
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

 private:
  std::vector<int64_t> amounts_;  // as pad() takes them, where the operator can't pad so by itself
};

template <size_t N>
struct ConvTransposeOptions {
  PerDim<N> stride = 1, padding = 0, output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  PerDim<N> dilation = 1;
  DType dtype = default_dtype();
};

// Weight of (in_channels, out_channels / groups, kernel...): that of the convolution that it inverts.
template <size_t N>
class ConvTransposeImpl : public Module {
 public:
  ConvTransposeImpl(int64_t in_channels, int64_t out_channels, PerDim<N> kernel_size,
                    ConvTransposeOptions<N> options = {});
  Tensor forward(const Tensor& input) override { return run(input, options.output_padding); }
  // output_size chooses among the sizes that a stride leaves open.
  Tensor forward(const Tensor& input, const std::vector<int64_t>& output_size);
  void reset_parameters();
  const PerDim<N> kernel_size;
  const ConvTransposeOptions<N> options;
  Tensor weight, bias;

 private:
  Tensor run(const Tensor& input, IntArrayRef output_padding) const;
};

#define STRATA_CONVS(N)                                       \
  using Conv##N##dOptions = ConvOptions<N>;                   \
  using Conv##N##dImpl = ConvImpl<N>;                         \
  STRATA_MODULE(Conv##N##d);                                  \
  using ConvTranspose##N##dOptions = ConvTransposeOptions<N>; \
  using ConvTranspose##N##dImpl = ConvTransposeImpl<N>;       \
  STRATA_MODULE(ConvTranspose##N##d)
STRATA_CONVS(1);
STRATA_CONVS(2);
STRATA_CONVS(3);
#undef STRATA_CONVS

}  // namespace strata::nn
