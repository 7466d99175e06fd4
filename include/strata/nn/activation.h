// Activations. None writes over its input: where Python has inplace=True, the operator of that name with _ does it.
#pragma once
#include <string>

#include "strata/nn/module.h"

namespace strata::nn {

// Modules that are one expression of one tensor, `input`, and of no, one or two settings with defaults.
#define STRATA_LAYER(NAME, RESULT)                                  \
  class NAME##Impl : public Module {                                \
   public:                                                          \
    Tensor forward(const Tensor& input) override { return RESULT; } \
  };                                                                \
  STRATA_MODULE(NAME)
#define STRATA_LAYER_1(NAME, TYPE, SETTING, DEFAULT, RESULT)                     \
  class NAME##Impl : public Module {                                             \
   public:                                                                       \
    explicit NAME##Impl(TYPE SETTING = DEFAULT) : SETTING(std::move(SETTING)) {} \
    Tensor forward(const Tensor& input) override { return RESULT; }              \
    const TYPE SETTING;                                                          \
  };                                                                             \
  STRATA_MODULE(NAME)
#define STRATA_LAYER_2(NAME, TYPE, SETTING, DEFAULT, TYPE2, SETTING2, DEFAULT2, RESULT)                              \
  class NAME##Impl : public Module {                                                                                 \
   public:                                                                                                           \
    explicit NAME##Impl(TYPE SETTING = DEFAULT, TYPE2 SETTING2 = DEFAULT2) : SETTING(SETTING), SETTING2(SETTING2) {} \
    Tensor forward(const Tensor& input) override { return RESULT; }                                                  \
    const TYPE SETTING;                                                                                              \
    const TYPE2 SETTING2;                                                                                            \
  };                                                                                                                 \
  STRATA_MODULE(NAME)

STRATA_LAYER(ReLU, ops::relu(input));
STRATA_LAYER(ReLU6, ops::hardtanh(input, 0, 6));
STRATA_LAYER(SELU, ops::selu(input));
STRATA_LAYER(SiLU, ops::silu(input));
STRATA_LAYER(Mish, ops::mish(input));
STRATA_LAYER(Hardswish, ops::hardswish(input));
STRATA_LAYER(Hardsigmoid, ops::hardsigmoid(input));
STRATA_LAYER(Sigmoid, ops::sigmoid(input));
STRATA_LAYER(Tanh, ops::tanh(input));
STRATA_LAYER(LogSigmoid, ops::log_sigmoid(input));
STRATA_LAYER(Softsign, input / (ops::abs(input) + 1));
STRATA_LAYER(Tanhshrink, input - ops::tanh(input));
STRATA_LAYER_1(LeakyReLU, double, negative_slope, 1e-2, ops::leaky_relu(input, negative_slope));
STRATA_LAYER_1(ELU, double, alpha, 1.0, ops::elu(input, alpha));
STRATA_LAYER_1(CELU, double, alpha, 1.0, ops::celu(input, alpha));
STRATA_LAYER_1(Softshrink, double, lambd, 0.5, ops::softshrink(input, lambd));
STRATA_LAYER_1(Hardshrink, double, lambd, 0.5, ops::hardshrink(input, lambd));
STRATA_LAYER_1(GELU, std::string, approximate, "none", ops::gelu(input, approximate));
STRATA_LAYER_1(GLU, int64_t, dim, -1, ops::glu(input, dim));
STRATA_LAYER_2(Softplus, double, beta, 1.0, double, threshold, 20.0, ops::softplus(input, beta, threshold));

// x limited to [min_val, max_val].
class HardtanhImpl : public Module {
 public:
  explicit HardtanhImpl(double min_val = -1, double max_val = 1) : min_val(min_val), max_val(max_val) {
    STRATA_CHECK_VALUE(max_val > min_val, "max_val must be larger than min_val, but got min_val=", min_val,
                       " and max_val=", max_val);
  }
  Tensor forward(const Tensor& input) override { return ops::hardtanh(input, min_val, max_val); }
  const double min_val, max_val;
};
STRATA_MODULE(Hardtanh);

// x where x > threshold, else value.
class ThresholdImpl : public Module {
 public:
  ThresholdImpl(double threshold, double value) : threshold(threshold), value(value) {}
  Tensor forward(const Tensor& input) override { return ops::threshold(input, threshold, value); }
  const double threshold, value;
};
STRATA_MODULE(Threshold);

// leaky_relu whose slopes are uniform in [lower, upper] in training, their mean otherwise: arXiv:1505.00853.
class RReLUImpl : public Module {
 public:
  explicit RReLUImpl(double lower = 1.0 / 8, double upper = 1.0 / 3) : lower(lower), upper(upper) {}
  Tensor forward(const Tensor& input) override;
  const double lower, upper;
};
STRATA_MODULE(RReLU);

// x where x > 0, else weight * x, with one learned weight, or one for each channel (dim 1).
class PReLUImpl : public Module {
 public:
  explicit PReLUImpl(int64_t num_parameters = 1, double init = 0.25, DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override { return ops::prelu(input, weight); }
  Tensor weight;
};
STRATA_MODULE(PReLU);

// Along `dim`, which has to be given.
#define STRATA_ALONG_DIM(NAME, RESULT)                              \
  class NAME##Impl : public Module {                                \
   public:                                                          \
    explicit NAME##Impl(int64_t dim) : dim(dim) {}                  \
    Tensor forward(const Tensor& input) override { return RESULT; } \
    const int64_t dim;                                              \
  };                                                                \
  STRATA_MODULE(NAME)

STRATA_ALONG_DIM(Softmax, ops::softmax(input, dim));
STRATA_ALONG_DIM(LogSoftmax, ops::log_softmax(input, dim));
STRATA_ALONG_DIM(Softmin, ops::softmax(-input, dim));
#undef STRATA_ALONG_DIM

// Softmax over the channels of (N, C, H, W) or (C, H, W).
class Softmax2dImpl : public Module {
 public:
  Tensor forward(const Tensor& input) override {
    STRATA_CHECK_VALUE(input.dim() == 3 || input.dim() == 4, "Softmax2d: expected input to be 3D or 4D, got ",
                       input.dim(), "D instead");
    return ops::softmax(input, -3);
  }
};
STRATA_MODULE(Softmax2d);

}  // namespace strata::nn
