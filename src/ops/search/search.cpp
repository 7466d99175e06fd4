// Binary search in sorted values, membership and counting.
#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "core/parallel.h"
#include "run/formulas.h"
#include "run/index_args.h"
#include "run/visit.h"
#include "strata/generated/by_hand/search.h"
#include "strata/generated/ops/create.h"

namespace strata::eager {

namespace {

// Where a binary search ends: it halves what is left while `before(middle)` says on which side. Without branches that
// depend on the values, which a processor guesses wrong half of the time.
template <class F>
int64_t bisect(int64_t n, F&& before) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool up = before(middle);
    low = up ? middle + 1 : low;
    high = up ? high : middle;
  }
  return low;
}

// Fills `out` for contiguous values of a wide dtype; `order` (or null) sorts each line of the sequence.
void fill_places(int64_t* out, const Tensor& sequence, const int64_t* order, const Tensor& values, bool right) {
  const int64_t n = sequence.sizes()[sequence.dim() - 1];
  const int64_t per_row = sequence.dim() == 1 ? 0 : values.sizes()[values.dim() - 1];
  visit_reals(sequence.dtype(), "searchsorted", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *all = sequence.data<T>(), *wanted = values.data<T>();
    parallel_for(0, values.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = per_row ? i / per_row * n : 0;
        const T value = wanted[i], *line = all + first;
        const int64_t* place = order ? order + first : nullptr;
        const auto before = [=](T at) { return right ? !(at > value) : !(at >= value); };
        out[i] = place ? bisect(n, [=](int64_t m) { return before(line[place[m]]); })
                       : bisect(n, [=](int64_t m) { return before(line[m]); });
      }
    });
  });
}

Tensor places(const Tensor& sequence, const Tensor& values, bool int32, bool right, const Tensor& sorter) {
  formulas::check_search(sequence, values, sorter);
  Tensor order;
  if (sorter.defined()) {
    order = as_contiguous(sorter);
    STRATA_CHECK(!first_outside(order, 0, sequence.sizes()[sequence.dim() - 1]),
                 "searchsorted(): sorter index out of range");
  }
  const DType t = wide_dtype(formulas::search_dtype(sequence, values));
  const Tensor out = new_tensor(sequence, values.sizes(), DType::I64);
  if (out.numel() != 0)
    fill_places(out.data<int64_t>(), as_contiguous(as_dtype(sequence, t)),
                order.defined() ? order.data<int64_t>() : nullptr, as_contiguous(as_dtype(values, t)), right);
  return int32 ? as_dtype(out, DType::I32) : out;
}

}  // namespace

void search(const Tensor& result, const Tensor& sequence, const Tensor& values, bool right) {
  fill_places(result.data<int64_t>(), as_contiguous(widened(sequence)), nullptr, as_contiguous(widened(values)), right);
}

Tensor searchsorted(const Tensor& sequence, const Tensor& values, bool int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  return places(sequence, values, int32, formulas::search_side(right, side), sorter);
}

Tensor searchsorted(const Tensor& sequence, const Scalar& value, bool int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  return places(sequence, wrapped_number(value), int32, formulas::search_side(right, side), sorter);
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool int32, bool right) {
  formulas::check_boundaries(boundaries);
  return places(boundaries, self, int32, right, {});
}

Tensor bucketize(const Scalar& value, const Tensor& boundaries, bool int32, bool right) {
  return places(boundaries, wrapped_number(value), int32, right, {});
}

namespace {

template <class T, class F>
void fill_among(bool* out, const T* elements, int64_t n, F&& found) {
  parallel_for(0, n, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = found(elements[i]);
  });
}

// A table of integers that lie close together: false where that would be larger than what is asked for.
template <class T>
bool among_by_table(bool* out, const T* elements, int64_t n, const std::vector<T>& tests, bool invert) {
  const auto [least, most] = std::minmax_element(tests.begin(), tests.end());
  const T low = *least, high = *most;
  const uint64_t range = uint64_t(high) - uint64_t(low);
  if (range >= 4 * (uint64_t(n) + tests.size()) + 1024) return false;
  std::vector<char> has(range + 1, 0);
  for (T v : tests) has[uint64_t(v) - uint64_t(low)] = 1;
  fill_among(out, elements, n,
             [&, low, high](T v) { return (v >= low && v <= high && has[uint64_t(v) - uint64_t(low)]) != invert; });
  return true;
}

}  // namespace

// Looks into a table of the tests, or sorts them.
void among(const Tensor& result, const Tensor& elements, const Tensor& tests, bool invert) {
  const Tensor e = as_contiguous(widened(elements)), wanted = as_contiguous(widened(tests));
  bool* out = result.data<bool>();
  visit_reals(e.dtype(), "isin", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      const T* all = e.data<T>();
      std::vector<T> sorted(wanted.data<T>(), wanted.data<T>() + wanted.numel());
      if (sorted.size() == 1)
        return fill_among(out, all, e.numel(), [test = sorted[0], invert](T v) { return (v == test) != invert; });
      if constexpr (std::is_integral_v<T>) {
        if (!sorted.empty() && among_by_table(out, all, e.numel(), sorted, invert)) return;
      }
      sorted.erase(std::remove_if(sorted.begin(), sorted.end(), [](T v) { return is_nan(v); }), sorted.end());
      std::sort(sorted.begin(), sorted.end());
      sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
      const T* at = sorted.data();
      const auto count = int64_t(sorted.size());
      fill_among(out, all, e.numel(), [=](T v) {
        const int64_t place = bisect(count, [=](int64_t m) { return at[m] < v; });
        return (place < count && at[place] == v) != invert;
      });
    }
  });
}

Tensor isin(const Tensor& elements, const Tensor& tests, bool, bool invert) {
  const DType t = formulas::among_dtype(elements, tests);
  const Tensor out = new_tensor(elements, elements.sizes(), DType::Bool);
  among(out, as_dtype(elements, t), as_dtype(tests, t), invert);
  return out;
}

Tensor isin(const Tensor& elements, const Scalar& test, bool unique, bool invert) {
  return isin(elements, wrapped_number(test), unique, invert);
}

Tensor isin(const Scalar& element, const Tensor& tests, bool unique, bool invert) {
  return isin(wrapped_number(element), tests, unique, invert);
}

namespace {

template <class T>
void add_to_bins(const Tensor& result, const int64_t* at, const Tensor& weights) {
  fill_values(result, Scalar(0));
  T* to = result.data<T>();
  const T* w = weights.data<T>();
  for (int64_t i = 0; i < weights.numel(); ++i) to[at[i]] = add_values(to[at[i]], w[i]);
}

}  // namespace

void fill_bins(const Tensor& result, const Tensor& weights, const Tensor& index, int64_t bins) {
  const Tensor at = as_contiguous(as_dtype(index, DType::I64)), w = as_contiguous(weights);
  check_index_range(at, bins, 0, ErrorKind::Index);
  const auto add = result.dtype() == DType::I64   ? add_to_bins<int64_t>
                   : result.dtype() == DType::F32 ? add_to_bins<float>
                                                  : add_to_bins<double>;
  add(result, at.data<int64_t>(), w);
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  formulas::check_bincount(self, weights, minlength);
  if (self.numel() == 0) return ops::new_zeros(self, {minlength}, DType::I64);
  const Tensor index = as_contiguous(as_dtype(self, DType::I64));
  const int64_t* at = index.data<int64_t>();
  const int64_t n = index.numel();
  int64_t low = at[0], high = at[0];
  for (int64_t i = 1; i < n; ++i) low = std::min(low, at[i]), high = std::max(high, at[i]);
  STRATA_CHECK(low >= 0, "bincount only supports 1-d non-negative integral inputs, got ", low);
  const DType t = !weights.defined() ? DType::I64 : weights.dtype() == DType::F32 ? DType::F32 : DType::F64;
  const Tensor out = new_tensor(self, {std::max(minlength, checked_add(high, 1, "bincount"))}, t);
  if (weights.defined()) {
    const Tensor w = as_contiguous(as_dtype(weights, t));
    t == DType::F32 ? add_to_bins<float>(out, at, w) : add_to_bins<double>(out, at, w);
  } else {
    fill_values(out, Scalar(0));
    int64_t* counts = out.data<int64_t>();
    // Equal neighbours count in other places, where there are few: an addition would wait for the one before it.
    const int64_t bins = high + 1, ways = bins <= 1024 ? 4 : 1;
    std::vector<int64_t> aside(size_t(ways - 1) * size_t(ways > 1 ? bins : 0));
    int64_t i = 0;
    for (; ways > 1 && i + 4 <= n; i += 4) {
      ++counts[at[i]];
      for (int64_t w = 1; w < 4; ++w) ++aside[size_t((w - 1) * bins + at[i + w])];
    }
    for (; i < n; ++i) ++counts[at[i]];
    for (size_t k = 0; k < aside.size(); ++k) counts[k % size_t(bins)] += aside[k];
  }
  return out;
}

namespace {
// Places are computed in the elements' own type, as PyTorch does: 0.7f of ten bins from 0 to 1 is in the eighth.
template <class T>
Tensor counted(const Tensor& x, int64_t bins, double least, double most) {
  const T* at = x.data<T>();
  const int64_t n = x.numel();
  if (least == most && n > 0) {
    T smallest = at[0], largest = at[0];
    for (int64_t i = 0; i < n; ++i) {  // NaN stays and is refused
      smallest = at[i] < smallest || at[i] != at[i] ? at[i] : smallest;
      largest = at[i] > largest || at[i] != at[i] ? at[i] : largest;
    }
    least = double(smallest);
    most = double(largest);
  }
  const auto [from, to] = formulas::histc_range(least, most);
  const T low = T(from), high = T(to), span = high - low, count = T(bins);
  const Tensor wide = new_tensor(x, {bins}, DType::F64);
  fill_values(wide, Scalar(0));
  double* counts = wide.data<double>();
  for (int64_t i = 0; i < n; ++i) {
    if (!(at[i] >= low && at[i] <= high)) continue;
    const T place = (at[i] - low) * count / span;  // NaN where the range overflows
    counts[place < count ? int64_t(place) : bins - 1] += 1;
  }
  return wide;
}
}  // namespace

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  formulas::check_histc(self, bins);
  const bool narrow = self.dtype() != DType::F64;
  const Tensor x = as_contiguous(as_dtype(self, narrow ? DType::F32 : DType::F64));
  const Tensor made = narrow ? counted<float>(x, bins, min.to_double(), max.to_double())
                             : counted<double>(x, bins, min.to_double(), max.to_double());
  return as_dtype(made, self.dtype());
}

}  // namespace strata::eager
