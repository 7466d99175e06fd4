// Sums and products in shape rules: numbers are checked to fit, symbols are not.
#pragma once
#include <cstdint>

#include "base/checked.h"

namespace strata::shape {

template <class S>
S plus(const S& a, const S& b) {
  return a + b;
}
template <>
inline int64_t plus(const int64_t& a, const int64_t& b) {
  return checked_add(a, b, "size");
}

template <class S>
S times(const S& a, const S& b) {
  return a * b;
}
template <>
inline int64_t times(const int64_t& a, const int64_t& b) {
  return checked_mul(a, b, "size");
}

// Elements that a kernel reaches over, less one.
template <class S>
S kernel_reach(const S& kernel, const S& dilation) {
  return times(dilation, S(kernel - S(1)));
}

}  // namespace strata::shape
