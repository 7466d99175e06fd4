// The dims that a kernel runs over, and the strides of its operands there.
#pragma once
#include "core/tensor.h"

namespace strata::device {

struct Walk {
  DimVec sizes;
  std::vector<DimVec> strides;  // by operand
  // Joins neighbours that every operand walks in one step, and leaves out dims of one place; at least one stays.
  void join();
  int64_t count() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
};

// Strides of `t` over `sizes`, to which it broadcasts from the right.
DimVec strides_over(const Tensor& t, IntArrayRef sizes);

}  // namespace strata::device
