// Padding layers: one number for all sides, or two a dim, from the last to the first.
#pragma once
#include "strata/nn/module.h"
#include "strata/nn/sizes.h"

namespace strata::nn {

#define STRATA_PAD(NAME, RANK, MODE)                                                        \
  class NAME##Impl : public Module {                                                        \
   public:                                                                                  \
    explicit NAME##Impl(PerDim<2 * RANK> padding) : padding(padding) {}                     \
    Tensor forward(const Tensor& input) override { return ops::pad(input, padding, MODE); } \
    const PerDim<2 * RANK> padding;                                                         \
  };                                                                                        \
  STRATA_MODULE(NAME)
// `value` around the last dims.
#define STRATA_CONSTANT_PAD(NAME, RANK)                                                                  \
  class NAME##Impl : public Module {                                                                     \
   public:                                                                                               \
    NAME##Impl(PerDim<2 * RANK> padding, double value) : padding(padding), value(value) {}               \
    Tensor forward(const Tensor& input) override { return ops::pad(input, padding, "constant", value); } \
    const PerDim<2 * RANK> padding;                                                                      \
    const double value;                                                                                  \
  };                                                                                                     \
  STRATA_MODULE(NAME)
// The last dims continued from their other ends.
#define STRATA_CIRCULAR_PAD(NAME, RANK)                                                                                \
  class NAME##Impl : public Module {                                                                                   \
   public:                                                                                                             \
    explicit NAME##Impl(PerDim<2 * RANK> padding) : padding(padding) {}                                                \
    Tensor forward(const Tensor& input) override {                                                                     \
      STRATA_CHECK_VALUE(input.dim() == RANK + 1 || input.dim() == RANK + 2, "expected ", RANK + 1, "D or ", RANK + 2, \
                         "D input (got ", input.dim(), "D input)");                                                    \
      return ops::pad(input, padding, "circular");                                                                     \
    }                                                                                                                  \
    const PerDim<2 * RANK> padding;                                                                                    \
  };                                                                                                                   \
  STRATA_MODULE(NAME)

STRATA_CONSTANT_PAD(ConstantPad1d, 1);
STRATA_CONSTANT_PAD(ConstantPad2d, 2);
STRATA_CONSTANT_PAD(ConstantPad3d, 3);
STRATA_PAD(ZeroPad1d, 1, "constant");
STRATA_PAD(ZeroPad2d, 2, "constant");
STRATA_PAD(ZeroPad3d, 3, "constant");
STRATA_PAD(ReflectionPad1d, 1, "reflect");
STRATA_PAD(ReflectionPad2d, 2, "reflect");
STRATA_PAD(ReflectionPad3d, 3, "reflect");
STRATA_PAD(ReplicationPad1d, 1, "replicate");
STRATA_PAD(ReplicationPad2d, 2, "replicate");
STRATA_PAD(ReplicationPad3d, 3, "replicate");
STRATA_CIRCULAR_PAD(CircularPad1d, 1);
STRATA_CIRCULAR_PAD(CircularPad2d, 2);
STRATA_CIRCULAR_PAD(CircularPad3d, 3);
#undef STRATA_PAD
#undef STRATA_CONSTANT_PAD
#undef STRATA_CIRCULAR_PAD

}  // namespace strata::nn
