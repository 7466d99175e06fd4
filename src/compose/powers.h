// The powers 0 to n - 1 (n of 1 or more) of each element, in a new last dim.
#pragma once
#include <vector>

#include "core/tensor.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/scan.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

inline Tensor powers_of(const Tensor& x, int64_t n) {
  Tensor base = ops::unsqueeze(is_integral(x.dtype(), true) ? ops::to(x, DType::I64) : x, -1);
  DimVec sizes(base.sizes());
  sizes.back() = n - 1;
  std::vector<Tensor> factors{ops::ones_like(base), ops::expand(base, sizes)};
  return ops::cumprod(ops::cat(factors, -1), -1);
}

}  // namespace strata::eager
