// Normalisation: batch (Ioffe and Szegedy, arXiv:1502.03167), layer (Ba et al., arXiv:1607.06450), RMS (Zhang and
// Sennrich, arXiv:1910.07467), group (Wu and He, arXiv:1803.08494), instance (Ulyanov et al., arXiv:1607.08022).
#pragma once
#include "strata/nn/module.h"
#include "strata/nn/sizes.h"

namespace strata::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: the running values are means over all batches
  bool affine = true, track_running_stats = true;
  DType dtype = default_dtype();
  bool bias = true;
};
struct InstanceNormOptions : BatchNormOptions {
  InstanceNormOptions() { affine = track_running_stats = false; }
};

// Weights, biases and running statistics by channel. `least`, `most`: the dims that an input may have.
class NormBase : public Module {
 public:
  void reset_running_stats();
  const int64_t num_features;
  const BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  NormBase(int64_t num_features, BatchNormOptions options, int least, int most);
  void check_dims(const Tensor& input) const;
  const int least_, most_;
};

// Over the batch in training, by the running values otherwise.
class BatchNormBase : public NormBase {
 public:
  using NormBase::NormBase;
  Tensor forward(const Tensor& input) override;
};

// Over each channel of each sample, unless it tracks running statistics and is not training.
class InstanceNormBase : public NormBase {
 public:
  using NormBase::NormBase;
  Tensor forward(const Tensor& input) override;
};

// Inputs of RANK spatial dims; BatchNorm1d takes (N, C) too, InstanceNorm those without N.
#define STRATA_NORM(NAME, KIND, LEAST, MOST)                              \
  class NAME##Impl : public KIND##Base {                                  \
   public:                                                                \
    explicit NAME##Impl(int64_t num_features, KIND##Options options = {}) \
        : KIND##Base(num_features, options, LEAST, MOST) {}               \
  };                                                                      \
  STRATA_MODULE(NAME)
STRATA_NORM(BatchNorm1d, BatchNorm, 2, 3);
STRATA_NORM(BatchNorm2d, BatchNorm, 4, 4);
STRATA_NORM(BatchNorm3d, BatchNorm, 5, 5);
STRATA_NORM(InstanceNorm1d, InstanceNorm, 2, 3);
STRATA_NORM(InstanceNorm2d, InstanceNorm, 3, 4);
STRATA_NORM(InstanceNorm3d, InstanceNorm, 4, 5);
#undef STRATA_NORM

// Over the last dims, whose sizes are given.
class LayerNormImpl : public Module {
 public:
  explicit LayerNormImpl(Sizes normalized_shape, double eps = 1e-5, bool elementwise_affine = true, bool bias = true,
                         DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override;
  const Sizes normalized_shape;
  const double eps;
  Tensor weight, bias;
};
STRATA_MODULE(LayerNorm);

// Divides by the root of the mean square over the last dims. Without eps: the dtype's epsilon.
class RMSNormImpl : public Module {
 public:
  explicit RMSNormImpl(Sizes normalized_shape, std::optional<double> eps = std::nullopt, bool elementwise_affine = true,
                       DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override { return ops::rms_norm(input, normalized_shape, weight, eps); }
  const Sizes normalized_shape;
  const std::optional<double> eps;
  Tensor weight;
};
STRATA_MODULE(RMSNorm);

// Over each group of channels of each sample of (N, C, ...).
class GroupNormImpl : public Module {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels, double eps = 1e-5, bool affine = true, bool bias = true,
                DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override;
  const int64_t num_groups;
  const double eps;
  Tensor weight, bias;
};
STRATA_MODULE(GroupNorm);

// Divides by a power of the mean square over `size` neighbouring channels.
class LocalResponseNormImpl : public Module {
 public:
  explicit LocalResponseNormImpl(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1.0)
      : size(size), alpha(alpha), beta(beta), k(k) {}
  Tensor forward(const Tensor& input) override;
  const int64_t size;
  const double alpha, beta, k;
};
STRATA_MODULE(LocalResponseNorm);

}  // namespace strata::nn
