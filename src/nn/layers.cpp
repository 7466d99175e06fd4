// Layers that have parameters.
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

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, bool has_bias, DType dtype) {
  weight = register_parameter("weight", ops::empty({out_features, in_features}, dtype));
  bias = register_parameter("bias", has_bias ? ops::empty({out_features}, dtype) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() { reset(weight, bias); }

template <size_t N>
ConvImpl<N>::ConvImpl(int64_t in_channels, int64_t out_channels, PerDim<N> kernel_size, ConvOptions<N> given)
    : options(given) {
  STRATA_CHECK_VALUE(options.groups > 0 && in_channels % options.groups == 0 && out_channels % options.groups == 0,
                     "Conv", N, "d: expected a number of groups that divides ", in_channels, " and ", out_channels,
                     " channels, got ", options.groups);
  DimVec sizes = {out_channels, in_channels / options.groups};
  for (int64_t k : kernel_size) sizes.push_back(k);
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
  const IntArrayRef stride = o.stride, padding = o.padding, dilation = o.dilation;
  if constexpr (N == 1) return ops::conv1d(input, weight, bias, stride, padding, dilation, o.groups);
  if constexpr (N == 2) return ops::conv2d(input, weight, bias, stride, padding, dilation, o.groups);
  return ops::conv3d(input, weight, bias, stride, padding, dilation, o.groups);
}

template class ConvImpl<1>;
template class ConvImpl<2>;
template class ConvImpl<3>;

BatchNormBase::BatchNormBase(int64_t num_features, BatchNormOptions given, int least, int most)
    : options(given), least_(least), most_(most) {
  const DType t = options.dtype;
  weight = register_parameter("weight", options.affine ? ops::ones({num_features}, t) : Tensor());
  bias = register_parameter("bias", options.affine ? ops::zeros({num_features}, t) : Tensor());
  const bool tracks = options.track_running_stats;
  running_mean = register_buffer("running_mean", tracks ? ops::zeros({num_features}, t) : Tensor());
  running_var = register_buffer("running_var", tracks ? ops::ones({num_features}, t) : Tensor());
  num_batches_tracked = register_buffer("num_batches_tracked", tracks ? ops::zeros({}, DType::I64) : Tensor());
}

Tensor BatchNormBase::forward(const Tensor& input) {
  STRATA_CHECK_VALUE(input.dim() >= least_ && input.dim() <= most_, "batch norm: expected ", least_,
                     most_ > least_ ? str_cat(" or ", most_) : "", " dims, got an input of ", input.dim());
  double momentum = options.momentum.value_or(0.0);
  const bool track = is_training() && options.track_running_stats;
  if (track) {
    ops::add_(num_batches_tracked, 1);
    if (!options.momentum) momentum = 1.0 / item<double>(num_batches_tracked);
  }
  // Training without tracking neither reads nor writes the running values.
  const bool running = !is_training() || track, by_batch = is_training() || !running_mean.defined();
  return ops::batch_norm(input, weight, bias, running ? running_mean : Tensor(), running ? running_var : Tensor(),
                         by_batch, momentum, options.eps, true);
}

LayerNormImpl::LayerNormImpl(std::vector<int64_t> sizes, double eps, bool elementwise_affine, DType dtype)
    : normalized_shape(std::move(sizes)), eps(eps) {
  weight = register_parameter("weight", elementwise_affine ? ops::ones(normalized_shape, dtype) : Tensor());
  bias = register_parameter("bias", elementwise_affine ? ops::zeros(normalized_shape, dtype) : Tensor());
}

Tensor LayerNormImpl::forward(const Tensor& input) {
  return ops::layer_norm(input, normalized_shape, weight, bias, eps);
}

}  // namespace strata::nn
