// Extrema of integers side by side, and where the first of equals is. Printed kernels of small integers are text for
// the baseline alone, which has no instruction for most of these; what they give is the same in any order.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "lower/kernel_abi.h"

namespace strata::eager {

// The largest (smallest) of n > 0 elements, to `value`.
using ExtremumFn = void (*)(const char* from, int64_t n, char* value);
// The place of the first of n elements that is *value, which is one of them.
using PlaceFn = int64_t (*)(const char* from, int64_t n, const char* value);

// A pass that reduces integers as they are to extrema and their places alone, or one that has no kernels here.
class Extrema {
 public:
  // Of a kernel's first pass; `input`: the dtype of the kernel's operand that it reads.
  Extrema(const StrataKernelEntry& entry, DType input);
  Extrema() = default;
  explicit operator bool() const { return place_ != nullptr; }
  // What the pass's function does, with the elements at `from`.
  void run(const StrataRowArgs& args, const char* from) const;

 private:
  ExtremumFn largest_ = nullptr, smallest_ = nullptr;
  PlaceFn place_ = nullptr;
  const StrataReduction* reductions_ = nullptr;
  int count_ = 0;
  int64_t width_ = 0;
};

}  // namespace strata::eager
