// Normalisation.
#include "strata/nn/norm.h"

namespace strata::nn {

namespace {
// A channel of one value has no variance.
void check_values_per_channel(const Tensor& input, int64_t values) {
  STRATA_CHECK_VALUE(values != 1, "Expected more than 1 value per channel when training, got input size ",
                     input.sizes());
}
// Elements of all dims from `first` on.
int64_t elements(const Tensor& input, int64_t first) {
  int64_t n = 1;
  for (int64_t d = first; d < input.dim(); ++d) n *= input.size(d);
  return n;
}
}  // namespace

NormBase::NormBase(int64_t num_features, BatchNormOptions given, int least, int most)
    : num_features(num_features), options(given), least_(least), most_(most) {
  const DType t = options.dtype;
  weight = register_parameter("weight", options.affine ? ops::ones({num_features}, t) : Tensor());
  bias = register_parameter("bias", options.affine && options.bias ? ops::zeros({num_features}, t) : Tensor());
  const bool tracks = options.track_running_stats;
  running_mean = register_buffer("running_mean", tracks ? ops::zeros({num_features}, t) : Tensor());
  running_var = register_buffer("running_var", tracks ? ops::ones({num_features}, t) : Tensor());
  num_batches_tracked = register_buffer("num_batches_tracked", tracks ? ops::zeros({}, DType::I64) : Tensor());
}

void NormBase::reset_running_stats() {
  if (!options.track_running_stats) return;
  ops::zero_(running_mean);
  ops::fill_(running_var, 1);
  ops::zero_(num_batches_tracked);
}

void NormBase::check_dims(const Tensor& input) const {
  STRATA_CHECK_VALUE(input.dim() >= least_ && input.dim() <= most_, "expected ", least_,
                     most_ > least_ ? str_cat("D or ", most_) : "", "D input (got ", input.dim(), "D input)");
}

Tensor BatchNormBase::forward(const Tensor& input) {
  check_dims(input);
  double momentum = options.momentum.value_or(0.0);
  const bool track = is_training() && options.track_running_stats;
  if (track) {
    ops::add_(num_batches_tracked, 1);
    if (!options.momentum) momentum = 1.0 / item<double>(num_batches_tracked);
  }
  // Training without tracking neither reads nor writes the running values.
  const bool running = !is_training() || track, by_batch = is_training() || !running_mean.defined();
  if (by_batch) check_values_per_channel(input, input.size(0) * elements(input, 2));
  return ops::batch_norm(input, weight, bias, running ? running_mean : Tensor(), running ? running_var : Tensor(),
                         by_batch, momentum, options.eps, true);
}

Tensor InstanceNormBase::forward(const Tensor& input) {
  check_dims(input);
  const bool alone = input.dim() == least_;
  const int64_t channels = input.size(alone ? 0 : 1);
  STRATA_CHECK_VALUE(!options.affine || channels == num_features, "expected input's size at dim=", alone ? 0 : 1,
                     " to match num_features (", num_features, "), but got: ", channels, ".");
  const bool own = is_training() || !options.track_running_stats;
  STRATA_CHECK_VALUE(!own || elements(input, alone ? 1 : 2) != 1,
                     "Expected more than 1 spatial element when training, got input size ", input.sizes());
  const Tensor result = ops::instance_norm(alone ? ops::unsqueeze(input, 0) : input, weight, bias, running_mean,
                                           running_var, own, options.momentum.value_or(0.0), options.eps, true);
  return alone ? ops::squeeze(result, 0) : result;
}

LayerNormImpl::LayerNormImpl(Sizes sizes, double eps, bool elementwise_affine, bool has_bias, DType dtype)
    : normalized_shape(std::move(sizes)), eps(eps) {
  weight = register_parameter("weight", elementwise_affine ? ops::ones(normalized_shape, dtype) : Tensor());
  bias = register_parameter("bias", elementwise_affine && has_bias ? ops::zeros(normalized_shape, dtype) : Tensor());
}

Tensor LayerNormImpl::forward(const Tensor& input) {
  return ops::layer_norm(input, normalized_shape, weight, bias, eps);
}

RMSNormImpl::RMSNormImpl(Sizes sizes, std::optional<double> eps, bool elementwise_affine, DType dtype)
    : normalized_shape(std::move(sizes)), eps(eps) {
  weight = register_parameter("weight", elementwise_affine ? ops::ones(normalized_shape, dtype) : Tensor());
}

GroupNormImpl::GroupNormImpl(int64_t num_groups, int64_t num_channels, double eps, bool affine, bool has_bias,
                             DType dtype)
    : num_groups(num_groups), eps(eps) {
  STRATA_CHECK_VALUE(num_groups > 0 && num_channels % num_groups == 0, "num_channels (", num_channels,
                     ") must be divisible by num_groups (", num_groups, ")");
  weight = register_parameter("weight", affine ? ops::ones({num_channels}, dtype) : Tensor());
  bias = register_parameter("bias", affine && has_bias ? ops::zeros({num_channels}, dtype) : Tensor());
}

Tensor GroupNormImpl::forward(const Tensor& input) {
  STRATA_CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", input.dim());
  check_values_per_channel(input, input.size(0) * input.size(1) / num_groups * elements(input, 2));
  return ops::group_norm(input, num_groups, weight, bias, eps);
}

Tensor LocalResponseNormImpl::forward(const Tensor& input) {
  STRATA_CHECK_VALUE(input.dim() >= 3, "Expected 3D or higher dimensionality input (got ", input.dim(), " dimensions)");
  if (input.numel() == 0) return input;
  // The mean over channels is a pooling over one image of height C and width of all positions.
  Tensor squares = ops::reshape(input * input, {input.size(0), 1, input.size(1), -1});
  squares = ops::pad(squares, {0, 0, size / 2, (size - 1) / 2});
  const Tensor means = ops::reshape(ops::avg_pool2d(squares, {size, 1}, {1, 1}), input.sizes());
  return input / ops::pow(ops::add(ops::mul(means, alpha), k), beta);
}

}  // namespace strata::nn
