// Size arithmetic that cannot overflow silently: the one place where products of sizes are formed.
#pragma once
#include <cstdint>

#include "base/array_ref.h"
#include "base/error.h"

namespace strata {

inline int64_t checked_mul(int64_t a, int64_t b, const char* what) {
  int64_t r;
  STRATA_CHECK(!__builtin_mul_overflow(a, b, &r), what, ": ", a, " * ", b,
               " does not fit in 64 bits; use smaller sizes");
  return r;
}

inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t r;
  STRATA_CHECK(!__builtin_add_overflow(a, b, &r), what, ": ", a, " + ", b,
               " does not fit in 64 bits; use smaller sizes");
  return r;
}

// Product of sizes; an empty dimension makes it 0 however large the others are.
inline int64_t checked_numel(IntArrayRef sizes, const char* what = "size") {
  int64_t n = 1;
  bool zero = false;
  for (int64_t s : sizes) {
    STRATA_CHECK(s >= 0, what, ": expected sizes of 0 or more, got ", sizes,
                 ": Trying to create tensor with negative dimension ", s);
    if (s == 0) zero = true;
  }
  if (zero) return 0;
  for (int64_t s : sizes) n = checked_mul(n, s, what);
  return n;
}

// The step of the dim before one of `size` elements that lie `step` apart, in a contiguous tensor of these sizes.
inline int64_t checked_step(int64_t step, int64_t size, IntArrayRef sizes) {
  STRATA_CHECK(!__builtin_mul_overflow(step, size > 1 ? size : 1, &step),
               "Stride calculation overflowed: the steps of an empty tensor of shape ", sizes,
               " do not fit in 64 bits; use smaller sizes beside the empty dim");
  return step;
}

inline int64_t checked_bytes(int64_t numel, int64_t itemsize, const char* what = "storage") {
  return checked_mul(numel, itemsize, what);
}

// A dim in [-ndim, ndim) as one in [0, ndim). 0-dim tensors accept 0 and -1.
inline int64_t wrap_dim(int64_t dim, int64_t ndim) {
  int64_t n = ndim > 0 ? ndim : 1;
  STRATA_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
                     "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

}  // namespace strata
