// Shape rules of views, over a size type S (int64_t in kernels; symbolic sizes need + - * / and comparisons only). They
// check what sizes alone decide and raise PyTorch's errors; strides follow in run/view_rules.h.
#pragma once
#include <algorithm>

#include "base/array_ref.h"
#include "base/error.h"
#include "core/shape/arithmetic.h"

namespace strata::shape {

template <class S>
struct Range {
  S start, length;
};

// An end of a slice: counted from the back when negative, clamped to [0, size].
template <class S>
S clamped_end(S at, S size) {
  if (at < 0) at = at + size;
  if (at < 0) return S(0);
  return at > size ? size : at;
}

template <class S>
Range<S> slice(S size, S start, S end, S step) {
  STRATA_CHECK(step > 0, "slice step must be positive");
  start = clamped_end(start, size);
  end = clamped_end(end, size);
  if (end <= start) return {start, S(0)};
  return {start, (end - start - 1) / step + 1};
}

template <class S>
S select_index(ArrayRef<S> sizes, int64_t dim, S index) {
  S size = sizes[size_t(dim)];
  STRATA_CHECK_INDEX(index >= -size && index < size, "select(): index ", index, " out of range for tensor of size ",
                     sizes, " at dimension ", dim);
  return index < 0 ? index + size : index;
}

template <class S>
S narrow_start(S size, S start, S length) {
  STRATA_CHECK(length >= 0, "narrow(): length must be non-negative.");
  STRATA_CHECK_INDEX(start >= -size && start <= size, "start out of range (expected to be in range of [", -size, ", ",
                     size, "], but got ", start, ")");
  if (start < 0) start = start + size;
  STRATA_CHECK(length <= size - start, "start (", start, ") + length (", length, ") exceeds dimension size (", size,
               ").");
  return start;
}

// How many windows unfold makes.
template <class S>
S windows(S extent, int64_t dim, S size, S step) {
  STRATA_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  STRATA_CHECK(size <= extent, "maximum size for tensor at dimension ", dim, " is ", extent, " but size is ", size);
  STRATA_CHECK(step > 0, "step is ", step, " but must be > 0");
  return (extent - size) / step + 1;
}

// How many parts split makes; the last one has size - (parts - 1) * split_size.
template <class S>
S parts(S size, S split_size) {
  STRATA_CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size=", split_size);
  STRATA_CHECK(split_size > 0 || size == 0,
               "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  if (split_size == 0 || size == 0) return S(1);
  return (size - 1) / split_size + 1;
}

template <class S>
void check_split_sizes(ArrayRef<S> split_sizes, S size, int64_t dim) {
  S sum(0);
  for (const S& s : split_sizes) {
    STRATA_CHECK(s >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
                 split_sizes);
    sum = plus(sum, s);
  }
  STRATA_CHECK(sum == size, "split_with_sizes expects split_sizes to sum exactly to ", size,
               " (input tensor's size at dimension ", dim, "), but got split_sizes=", split_sizes);
}

}  // namespace strata::shape
