// Layers that have parameters.
#include <algorithm>
#include <cmath>

#include "strata/nn/nn.h"

namespace strata::nn {

namespace {
// A slope of sqrt(5) makes the bound 1 / sqrt(fan in); a bias has the same one.
void reset(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const int64_t in = init::fans(weight).first;
  const double bound = in > 0 ? 1 / std::sqrt(double(in)) : 0;
  init::uniform_(bias, -bound, bound);
}
}  // namespace

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, bool has_bias, DType dtype)
    : in_features(in_features), out_features(out_features) {
  weight = register_parameter("weight", ops::empty({out_features, in_features}, dtype));
  bias = register_parameter("bias", has_bias ? ops::empty({out_features}, dtype) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() { reset(weight, bias); }

BilinearImpl::BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features, bool has_bias,
                           DType dtype) {
  STRATA_CHECK_VALUE(in1_features > 0, "in1_features must be > 0, but got ", in1_features);
  weight = register_parameter("weight", ops::empty({out_features, in1_features, in2_features}, dtype));
  bias = register_parameter("bias", has_bias ? ops::empty({out_features}, dtype) : Tensor());
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(double(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

PReLUImpl::PReLUImpl(int64_t num_parameters, double initial, DType dtype) {
  weight = register_parameter("weight", ops::full({num_parameters}, initial, dtype));
}

Tensor RReLUImpl::forward(const Tensor& input) {
  STRATA_CHECK(lower <= upper, "rrelu: expected lower <= upper, got ", lower, " and ", upper);
  if (!is_training()) return ops::leaky_relu(input, (lower + upper) / 2);
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(input.dtype()), "rrelu is not implemented for ", input.dtype(),
                               "; convert the input to float32 first");
  const Tensor drawn = ops::uniform_(ops::empty_like(input), lower, upper);
  return input * ops::where(ops::gt(ops::detach(input), Scalar(0)), Scalar(1.0), drawn);
}

// ---- convolutions

namespace {
void check_groups(int64_t groups, int64_t in_channels, int64_t out_channels) {
  STRATA_CHECK_VALUE(groups > 0, "groups must be a positive integer, got ", groups);
  STRATA_CHECK_VALUE(in_channels % groups == 0, "in_channels must be divisible by groups, got ", in_channels, " and ",
                     groups);
  STRATA_CHECK_VALUE(out_channels % groups == 0, "out_channels must be divisible by groups, got ", out_channels,
                     " and ", groups);
}

template <size_t N>
DimVec weight_sizes(int64_t first, int64_t second, const PerDim<N>& kernel_size) {
  DimVec sizes = {first, second};
  for (int64_t k : kernel_size) sizes.push_back(k);
  return sizes;
}

// Before and after each dim, from the last to the first: the odd element of "same" at the end.
template <size_t N>
std::vector<int64_t> pad_amounts(const ConvOptions<N>& o, const PerDim<N>& kernel_size) {
  std::vector<int64_t> amounts;
  for (size_t d = N; d-- > 0;) {
    const int64_t total = o.dilation[d] * (kernel_size[d] - 1);
    const bool same = o.padding.word == "same";
    amounts.push_back(same ? total / 2 : o.padding[d]);
    amounts.push_back(same ? total - total / 2 : o.padding[d]);
  }
  return amounts;
}
}  // namespace

template <size_t N>
ConvImpl<N>::ConvImpl(int64_t in_channels, int64_t out_channels, PerDim<N> kernel_size, ConvOptions<N> given)
    : options(given) {
  check_groups(options.groups, in_channels, out_channels);
  const std::string &word = options.padding.word, &mode = options.padding_mode;
  STRATA_CHECK_VALUE(word.empty() || word == "same" || word == "valid", "Invalid padding string '", word,
                     "', should be one of 'same', 'valid'");
  STRATA_CHECK_VALUE(
      word != "same" || std::all_of(options.stride.begin(), options.stride.end(), [](int64_t s) { return s == 1; }),
      "padding='same' is not supported for strided convolutions");
  STRATA_CHECK_VALUE(mode == "zeros" || mode == "reflect" || mode == "replicate" || mode == "circular",
                     "padding_mode must be one of zeros, reflect, replicate, circular, but got padding_mode='", mode,
                     "'");
  amounts_ = pad_amounts(options, kernel_size);
  const DimVec sizes = weight_sizes(out_channels, in_channels / options.groups, kernel_size);
  weight = this->register_parameter("weight", ops::empty(sizes, options.dtype));
  bias = this->register_parameter("bias", options.bias ? ops::empty({out_channels}, options.dtype) : Tensor());
  reset_parameters();
}

template <size_t N>
void ConvImpl<N>::reset_parameters() {
  reset(weight, bias);
}

template <size_t N>
Tensor ConvImpl<N>::forward(const Tensor& input) {
  const ConvOptions<N>& o = options;
  PerDim<N> padding = 0;
  bool alike = o.padding_mode == "zeros";  // the operator pads both ends alike
  for (size_t d = 0; d < N; ++d) {
    padding[d] = amounts_[2 * (N - 1 - d)];
    alike = alike && padding[d] == amounts_[2 * (N - 1 - d) + 1];
  }
  if (!alike) padding = 0;
  const Tensor x = alike ? input : ops::pad(input, amounts_, o.padding_mode == "zeros" ? "constant" : o.padding_mode);
  const IntArrayRef stride = o.stride, dilation = o.dilation;
  if constexpr (N == 1) return ops::conv1d(x, weight, bias, stride, padding, dilation, o.groups);
  if constexpr (N == 2) return ops::conv2d(x, weight, bias, stride, padding, dilation, o.groups);
  return ops::conv3d(x, weight, bias, stride, padding, dilation, o.groups);
}

template <size_t N>
ConvTransposeImpl<N>::ConvTransposeImpl(int64_t in_channels, int64_t out_channels, PerDim<N> kernel_size,
                                        ConvTransposeOptions<N> given)
    : kernel_size(kernel_size), options(given) {
  check_groups(options.groups, in_channels, out_channels);
  const DimVec sizes = weight_sizes(in_channels, out_channels / options.groups, kernel_size);
  weight = this->register_parameter("weight", ops::empty(sizes, options.dtype));
  bias = this->register_parameter("bias", options.bias ? ops::empty({out_channels}, options.dtype) : Tensor());
  reset_parameters();
}

template <size_t N>
void ConvTransposeImpl<N>::reset_parameters() {
  reset(weight, bias);
}

template <size_t N>
Tensor ConvTransposeImpl<N>::run(const Tensor& input, IntArrayRef output_padding) const {
  const ConvTransposeOptions<N>& o = options;
  const IntArrayRef stride = o.stride, padding = o.padding, dilation = o.dilation;
  if constexpr (N == 1)
    return ops::conv_transpose1d(input, weight, bias, stride, padding, output_padding, o.groups, dilation);
  if constexpr (N == 2)
    return ops::conv_transpose2d(input, weight, bias, stride, padding, output_padding, o.groups, dilation);
  return ops::conv_transpose3d(input, weight, bias, stride, padding, output_padding, o.groups, dilation);
}

template <size_t N>
Tensor ConvTransposeImpl<N>::forward(const Tensor& input, const std::vector<int64_t>& output_size) {
  const ConvTransposeOptions<N>& o = options;
  STRATA_CHECK_VALUE(output_size.size() == N || output_size.size() == size_t(input.dim()), "ConvTranspose", N,
                     "d: expected an output_size of ", N, " or ", input.dim(), " numbers, got ", output_size.size());
  PerDim<N> more = 0;
  for (size_t d = 0; d < N; ++d) {
    const int64_t n = input.size(int64_t(d) - int64_t(N));
    const int64_t smallest = (n - 1) * o.stride[d] - 2 * o.padding[d] + o.dilation[d] * (kernel_size[d] - 1) + 1;
    more[d] = output_size[output_size.size() - N + d] - smallest;
    STRATA_CHECK_VALUE(more[d] >= 0 && more[d] < o.stride[d], "ConvTranspose", N, "d: valid sizes of output dim ", d,
                       " range from ", smallest, " to ", smallest + o.stride[d] - 1, ", got ", smallest + more[d]);
  }
  return run(input, more);
}

template class ConvImpl<1>;
template class ConvImpl<2>;
template class ConvImpl<3>;
template class ConvTransposeImpl<1>;
template class ConvTransposeImpl<2>;
template class ConvTransposeImpl<3>;

}  // namespace strata::nn
