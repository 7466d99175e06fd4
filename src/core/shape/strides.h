// What results of several operands have in common: the broadcast sizes, and strides in the operands' order of dims.
#pragma once
#include <algorithm>

#include "base/checked.h"
#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Sizes<S> broadcast(ArrayRef<S> a, ArrayRef<S> b) {
  const size_t n = std::max(a.size(), b.size());
  Sizes<S> out(n);
  for (size_t i = n; i-- > 0;) {
    const S x = i < n - a.size() ? S(1) : a[i - (n - a.size())];
    const S y = i < n - b.size() ? S(1) : b[i - (n - b.size())];
    STRATA_CHECK(x == y || x == S(1) || y == S(1), "The size of tensor a (", x, ") must match the size of tensor b (",
                 y, ") at non-singleton dimension ", i);
    out[i] = x == S(1) ? y : x;
  }
  return out;
}

// Without gaps, the dims from slow to fast as the first of `count` operands has them that tells; what none tells stays
// in order. stride_of(k, d) is operand k's stride at dim d of the result, 0 where it is broadcast there.
template <class S, class StrideOf>
Sizes<S> result_strides(ArrayRef<S> sizes, size_t count, StrideOf&& stride_of) {
  const int n = int(sizes.size());
  SmallVec<int64_t, 8> order;  // from the fastest dim to the slowest
  for (int d = n; d-- > 0;) order.push_back(d);
  auto compare = [&](int64_t a, int64_t b) {  // 1: a must be slower than b
    for (size_t k = 0; k < count; ++k) {
      const S sa = stride_of(k, a), sb = stride_of(k, b);
      if (sa == S(0) || sb == S(0)) continue;
      if (!(sa == sb)) return sa < sb ? -1 : 1;
      if (sizes[size_t(a)] > sizes[size_t(b)]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < n; ++i) {
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      const int c = compare(order[size_t(j)], order[size_t(at)]);
      if (c > 0) {
        std::swap(order[size_t(j)], order[size_t(at)]);
        at = j;
      } else if (c < 0) {
        break;
      }
    }
  }
  Sizes<S> strides(size_t(n), S(0));
  S step(1);
  for (int64_t d : order) {
    strides[size_t(d)] = step;
    if constexpr (std::is_same_v<S, int64_t>) {
      // The slowest dim's size makes no step.
      if (d != order.back()) step = checked_step(step, sizes[size_t(d)], sizes);
    } else {
      step = step * larger(sizes[size_t(d)], S(1));
    }
  }
  return strides;
}

// The same of tensors.
template <class S>
Sizes<S> result_strides(ArrayRef<S> sizes, std::initializer_list<Geometry<S>> operands) {
  return result_strides(sizes, operands.size(), [&](size_t k, int64_t d) {
    const Geometry<S>& t = operands.begin()[k];
    const int64_t at = d - (int64_t(sizes.size()) - t.dim());
    return at < 0 || t.sizes[size_t(at)] == S(1) ? S(0) : t.strides[size_t(at)];
  });
}

// Whether the strides of images or volumes say that channels vary fastest, then columns, rows ... Those of dims of size
// 1 count, too: they tell apart what lies the same either way, as in PyTorch.
template <class S>
bool lies_channels_last(const Geometry<S>& t) {
  const int64_t n = t.dim();
  if ((n != 4 && n != 5) || t.numel() == S(0)) return false;
  S least(1);  // what the next slower dim may step
  auto follows = [&](int64_t d) {
    const S step = t.strides[size_t(d)];
    if (step < least) return false;
    least = step * t.sizes[size_t(d)];
    return true;
  };
  if (!follows(1)) return false;
  for (int64_t d = n; d-- > 2;)
    if (!follows(d)) return false;
  return !(least == t.strides[1]) && follows(0);
}

}  // namespace strata::shape
