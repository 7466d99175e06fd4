// Images: channels and positions exchanged, other sizes, windows as columns; channels shuffled.
#pragma once
#include "strata/nn/activation.h"
#include "strata/nn/sizes.h"

namespace strata::nn {

// (*, C r r, H, W) to (*, C, H r, W r), and back: arXiv:1609.05158.
class PixelShuffleImpl : public Module {
 public:
  explicit PixelShuffleImpl(int64_t upscale_factor) : upscale_factor(upscale_factor) {}
  Tensor forward(const Tensor& input) override { return ops::pixel_shuffle(input, upscale_factor); }
  const int64_t upscale_factor;
};
STRATA_MODULE(PixelShuffle);
class PixelUnshuffleImpl : public Module {
 public:
  explicit PixelUnshuffleImpl(int64_t downscale_factor) : downscale_factor(downscale_factor) {}
  Tensor forward(const Tensor& input) override { return ops::pixel_unshuffle(input, downscale_factor); }
  const int64_t downscale_factor;
};
STRATA_MODULE(PixelUnshuffle);

// Interleaves the channels of `groups` groups: arXiv:1707.01083.
class ChannelShuffleImpl : public Module {
 public:
  explicit ChannelShuffleImpl(int64_t groups) : groups(groups) {}
  Tensor forward(const Tensor& input) override;
  const int64_t groups;
};
STRATA_MODULE(ChannelShuffle);

struct FoldOptions {
  PerDim<2> dilation = 1, padding = 0, stride = 1;
};
// The windows of (N, C, H, W) or (C, H, W) as columns, (N, C * kernel area, windows).
class UnfoldImpl : public Module {
 public:
  explicit UnfoldImpl(PerDim<2> kernel_size, FoldOptions options = {}) : kernel_size(kernel_size), options(options) {}
  Tensor forward(const Tensor& input) override {
    return ops::im2col(input, kernel_size, options.dilation, options.padding, options.stride);
  }
  const PerDim<2> kernel_size;
  const FoldOptions options;
};
STRATA_MODULE(Unfold);
// Columns added up at their places in images (N, C, *output_size).
class FoldImpl : public Module {
 public:
  FoldImpl(PerDim<2> output_size, PerDim<2> kernel_size, FoldOptions options = {})
      : output_size(output_size), kernel_size(kernel_size), options(options) {}
  Tensor forward(const Tensor& input) override {
    return ops::col2im(input, output_size, kernel_size, options.dilation, options.padding, options.stride);
  }
  const PerDim<2> output_size, kernel_size;
  const FoldOptions options;
};
STRATA_MODULE(Fold);

// `size` or `scale_factor` of every spatial dim, or one number for all.
struct UpsampleOptions {
  std::vector<int64_t> size;
  std::vector<double> scale_factor;
  std::string mode = "nearest";
  std::optional<bool> align_corners;
  bool recompute_scale_factor = false;
};
namespace functional {
// (N, C, spatial...) at other sizes. mode: "nearest", "nearest-exact", "area", "linear" (1 spatial dim), "bilinear",
// "bicubic" (2) or "trilinear" (3). Floating dtypes.
Tensor interpolate(const Tensor& input, const UpsampleOptions& options);
}  // namespace functional
class UpsampleImpl : public Module {
 public:
  explicit UpsampleImpl(UpsampleOptions options) : options(std::move(options)) {}
  Tensor forward(const Tensor& input) override { return functional::interpolate(input, options); }
  const UpsampleOptions options;
};
STRATA_MODULE(Upsample);
// Images by "nearest", and by "bilinear" with corners aligned; `mode` and `align_corners` of the options are ignored.
class UpsamplingNearest2dImpl : public UpsampleImpl {
 public:
  explicit UpsamplingNearest2dImpl(UpsampleOptions o)
      : UpsampleImpl({std::move(o.size), std::move(o.scale_factor), "nearest", {}}) {}
};
STRATA_MODULE(UpsamplingNearest2d);
class UpsamplingBilinear2dImpl : public UpsampleImpl {
 public:
  explicit UpsamplingBilinear2dImpl(UpsampleOptions o)
      : UpsampleImpl({std::move(o.size), std::move(o.scale_factor), "bilinear", true}) {}
};
STRATA_MODULE(UpsamplingBilinear2d);

}  // namespace strata::nn
