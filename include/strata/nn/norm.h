// Normalisation: batch norm (Ioffe and Szegedy, arXiv:1502.03167), layer norm (Ba et al., arXiv:1607.06450).
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: the running values are means over all batches
  bool affine = true, track_running_stats = true;
  DType dtype = default_dtype();
};

// Over the batch in training, by the running values otherwise. `least`, `most`: the dims that an input may have.
class BatchNormBase : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  const BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  BatchNormBase(int64_t num_features, BatchNormOptions options, int least, int most);

 private:
  const int least_, most_;
};

// (N, C) or (N, C, L).
class BatchNorm1dImpl : public BatchNormBase {
 public:
  explicit BatchNorm1dImpl(int64_t num_features, BatchNormOptions options = {})
      : BatchNormBase(num_features, options, 2, 3) {}
};
STRATA_MODULE(BatchNorm1d);

// (N, C, H, W).
class BatchNorm2dImpl : public BatchNormBase {
 public:
  explicit BatchNorm2dImpl(int64_t num_features, BatchNormOptions options = {})
      : BatchNormBase(num_features, options, 4, 4) {}
};
STRATA_MODULE(BatchNorm2d);

// (N, C, D, H, W).
class BatchNorm3dImpl : public BatchNormBase {
 public:
  explicit BatchNorm3dImpl(int64_t num_features, BatchNormOptions options = {})
      : BatchNormBase(num_features, options, 5, 5) {}
};
STRATA_MODULE(BatchNorm3d);

// Over the last dims, whose sizes are given.
class LayerNormImpl : public Module {
 public:
  explicit LayerNormImpl(std::vector<int64_t> normalized_shape, double eps = 1e-5, bool elementwise_affine = true,
                         DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override;
  const std::vector<int64_t> normalized_shape;
  const double eps;
  Tensor weight, bias;
};
STRATA_MODULE(LayerNorm);

}  // namespace strata::nn
