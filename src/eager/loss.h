// Reductions of losses, as the integer argument `reduction` of PyTorch's operators names them.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// `loss` reduced by recorded operators. ValueError for another number.
Tensor apply_reduction(const Tensor& loss, int64_t reduction);

}  // namespace strata::eager
