// Dropout layers: active in training only.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

namespace functional {
// Each element is zeroed with probability p and the others are divided by 1 - p; channels: whole channels of (N, C,
// ...).
Tensor drop_channels(const Tensor& input, double p, bool training);
// Keeps zero mean and unit variance after SELU: arXiv:1706.02515, section 3.
Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool training = false);
Tensor feature_alpha_dropout(const Tensor& input, double p = 0.5, bool training = false);
}  // namespace functional

class DropoutBase : public Module {
 public:
  const double p;

 protected:
  explicit DropoutBase(double p) : p(p) {
    STRATA_CHECK_VALUE(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  }
  // Channels of an input with a batch, which has `batched` dims, or without one.
  Tensor of_channels(const Tensor& input, int64_t batched) const;
};

#define STRATA_DROPOUT(NAME, RESULT)                                \
  class NAME##Impl : public DropoutBase {                           \
   public:                                                          \
    explicit NAME##Impl(double p = 0.5) : DropoutBase(p) {}         \
    Tensor forward(const Tensor& input) override { return RESULT; } \
  };                                                                \
  STRATA_MODULE(NAME)

STRATA_DROPOUT(Dropout, ops::dropout(input, p, is_training()));
STRATA_DROPOUT(Dropout1d, of_channels(input, 3));
STRATA_DROPOUT(Dropout2d, functional::drop_channels(input, p, is_training()));
STRATA_DROPOUT(Dropout3d, of_channels(input, 5));
STRATA_DROPOUT(AlphaDropout, functional::alpha_dropout(input, p, is_training()));
STRATA_DROPOUT(FeatureAlphaDropout, functional::feature_alpha_dropout(input, p, is_training()));
#undef STRATA_DROPOUT

}  // namespace strata::nn
