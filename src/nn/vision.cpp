// Images at other sizes, channels shuffled and dropped.
#include "strata/nn/vision.h"

#include <cmath>

#include "strata/nn/dropout.h"

namespace strata::nn {

Tensor DropoutBase::of_channels(const Tensor& input, int64_t batched) const {
  STRATA_CHECK(input.dim() == batched || input.dim() == batched - 1, "dropout of channels: expected ", batched - 1,
               "D or ", batched, "D input, but received a ", input.dim(), "D input");
  if (input.dim() == batched) return functional::drop_channels(input, p, is_training());
  return ops::squeeze(functional::drop_channels(ops::unsqueeze(input, 0), p, is_training()), 0);
}

Tensor ChannelShuffleImpl::forward(const Tensor& input) {
  const int64_t channels = input.size(1);
  STRATA_CHECK(groups > 0 && channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels,
               " channels and ", groups, " groups.");
  std::vector<int64_t> split = input.sizes().vec();
  split[1] = channels / groups;
  split.insert(split.begin() + 1, groups);
  return ops::reshape(ops::transpose(ops::reshape(input, split), 1, 2), input.sizes());
}

namespace functional {

namespace {
std::vector<int64_t> channel_sizes(const Tensor& input) {
  STRATA_CHECK(input.dim() >= 2, "channel dropout requires at least 2 dimensions in the input, but got ", input.dim());
  std::vector<int64_t> sizes(size_t(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return sizes;
}

// A dropout of ones: all forms draw their random numbers in one operator.
Tensor dropped_ones(const Tensor& like, IntArrayRef sizes, double p) {
  return ops::dropout(ops::ones(sizes, like.dtype(), like.device()), p, true);
}

// Dropped values become SELU's floor, -scale * alpha; an affine map then keeps mean and variance.
Tensor alpha_drop(const Tensor& input, double p, bool training, bool channels) {
  constexpr double floor = -1.7580993408473766;
  if (!training || p == 0) return input;
  if (p == 1 || input.numel() == 0) return input * ops::zeros({}, input.dtype(), input.device());
  const double scale = 1.0 / std::pow((floor * floor * p + 1) * (1 - p), 0.5);
  const Tensor mask = dropped_ones(input, channels ? channel_sizes(input) : input.sizes().vec(), p);
  const Tensor kept = ops::to(ops::ne(mask, Scalar(0)), input.dtype());
  const Tensor shift = ops::sub(ops::mul(ops::rsub(kept, 1), floor * scale), floor * scale * p);
  return input * ops::mul(kept, scale) + shift;
}

void check_probability(double p) {
  STRATA_CHECK_VALUE(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}
}  // namespace

Tensor drop_channels(const Tensor& input, double p, bool training) {
  check_probability(p);
  return !training || p == 0 ? input : input * dropped_ones(input, channel_sizes(input), p);
}

Tensor alpha_dropout(const Tensor& input, double p, bool training) {
  check_probability(p);
  return alpha_drop(input, p, training, false);
}

Tensor feature_alpha_dropout(const Tensor& input, double p, bool training) {
  check_probability(p);
  return alpha_drop(input, p, training, true);
}

Tensor interpolate(const Tensor& x, const UpsampleOptions& o) {
  const std::string& mode = o.mode;
  const int64_t rank = x.dim() - 2;
  const bool near = mode == "nearest" || mode == "nearest-exact", any_rank = near || mode == "area";
  const bool fits = any_rank ? rank >= 1 && rank <= 3
                             : (mode == "linear" && rank == 1) || (mode == "trilinear" && rank == 3) ||
                                   ((mode == "bilinear" || mode == "bicubic") && rank == 2);
  STRATA_CHECK_NOT_IMPLEMENTED(fits, "interpolate: no mode '", mode, "' for an input of ", x.dim(), " dims");
  STRATA_CHECK_VALUE(!any_rank || !o.align_corners,
                     "align_corners option can only be set with the modes linear, bilinear, bicubic and trilinear");
  STRATA_CHECK_VALUE(o.size.empty() != o.scale_factor.empty(),
                     "exactly one of size and scale_factor should be defined");
  STRATA_CHECK_VALUE(o.size.empty() || !o.recompute_scale_factor,
                     "recompute_scale_factor is not meaningful with an explicit size.");
  const size_t given = o.size.size() + o.scale_factor.size(), n = size_t(rank);
  STRATA_CHECK_VALUE(given == 1 || given == n, "interpolate: expected one number or ", rank, ", got ", given);
  std::vector<int64_t> sizes;
  std::vector<std::optional<double>> s(3);
  for (size_t d = 0; d < n; ++d) {
    const size_t k = given == 1 ? 0 : d;
    if (!o.size.empty()) {
      sizes.push_back(o.size[k]);
      continue;
    }
    sizes.push_back(int64_t(std::floor(double(x.size(int64_t(d) + 2)) * o.scale_factor[k])));
    if (!o.recompute_scale_factor) s[d] = o.scale_factor[k];
  }
  if (mode == "area")
    return rank == 1   ? ops::adaptive_avg_pool1d(x, sizes)
           : rank == 2 ? ops::adaptive_avg_pool2d(x, sizes)
                       : ops::adaptive_avg_pool3d(x, sizes);
  for (size_t d = 0; d < n; ++d)
    STRATA_CHECK(sizes[d] > 0 && x.size(int64_t(d) + 2) > 0,
                 "Input and output sizes should be greater than 0, but got input ", x.sizes());
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(x.dtype()), "interpolate is not implemented for ", x.dtype(),
                               "; convert the input to float32 first");
  const bool aligned = o.align_corners.value_or(false);
  if (mode == "nearest")
    return rank == 1   ? ops::upsample_nearest1d(x, sizes, s[0])
           : rank == 2 ? ops::upsample_nearest2d(x, sizes, s[0], s[1])
                       : ops::upsample_nearest3d(x, sizes, s[0], s[1], s[2]);
  if (mode == "nearest-exact")
    return rank == 1   ? ops::_upsample_nearest_exact1d(x, sizes, s[0])
           : rank == 2 ? ops::_upsample_nearest_exact2d(x, sizes, s[0], s[1])
                       : ops::_upsample_nearest_exact3d(x, sizes, s[0], s[1], s[2]);
  if (mode == "linear") return ops::upsample_linear1d(x, sizes, aligned, s[0]);
  if (mode == "bilinear") return ops::upsample_bilinear2d(x, sizes, aligned, s[0], s[1]);
  if (mode == "bicubic") return ops::upsample_bicubic2d(x, sizes, aligned, s[0], s[1]);
  return ops::upsample_trilinear3d(x, sizes, aligned, s[0], s[1], s[2]);
}

}  // namespace functional
}  // namespace strata::nn
