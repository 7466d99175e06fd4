// Binary search in sorted values, membership and counting.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "core/parallel.h"
#include "eager/formulas.h"
#include "eager/index_args.h"
#include "eager/visit.h"
#include "strata/generated/eager_search.h"

namespace strata::eager {

namespace {

// Fills `out` for contiguous values of a wide dtype; `order` (or null) sorts each line of the sequence.
void fill_places(int64_t* out, const Tensor& sequence, const int64_t* order, const Tensor& values, bool right) {
  const int64_t n = sequence.sizes()[sequence.dim() - 1];
  const int64_t per_row = sequence.dim() == 1 ? 0 : values.sizes()[values.dim() - 1];
  visit_reals(sequence.dtype(), "searchsorted", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, values.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = per_row ? i / per_row * n : 0;
        const T value = values.data<T>()[i];
        int64_t low = 0, high = n;
        while (low < high) {
          const int64_t middle = low + (high - low) / 2;
          const T at = sequence.data<T>()[first + (order ? order[first + middle] : middle)];
          const bool before = right ? !(at > value) : !(at >= value);
          (before ? low : high) = before ? middle + 1 : middle;
        }
        out[i] = low;
      }
    });
  });
}

Tensor places(const Tensor& sequence, const Tensor& values, bool int32, bool right, const Tensor& sorter) {
  formulas::check_search(sequence, values, sorter);
  const DType t = wide_dtype(formulas::search_dtype(sequence, values));
  Tensor order;
  if (sorter.defined()) {
    order = as_contiguous(sorter);
    STRATA_CHECK(!first_outside(order, 0, sequence.sizes()[sequence.dim() - 1]),
                 "searchsorted(): sorter index out of range");
  }
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

// Sorts the tests.
void among(const Tensor& result, const Tensor& elements, const Tensor& tests, bool invert) {
  const Tensor e = as_contiguous(widened(elements)), wanted = as_contiguous(widened(tests));
  bool* out = result.data<bool>();
  visit_reals(e.dtype(), "isin", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      std::vector<T> sorted(wanted.data<T>(), wanted.data<T>() + wanted.numel());
      sorted.erase(std::remove_if(sorted.begin(), sorted.end(), [](T v) { return is_nan(v); }), sorted.end());
      std::sort(sorted.begin(), sorted.end());
      parallel_for(0, e.numel(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T v = e.data<T>()[i];
          out[i] = (!is_nan(v) && std::binary_search(sorted.begin(), sorted.end(), v)) != invert;
        }
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

Tensor zero_counts(const Tensor& like, int64_t count) {
  Tensor t = new_tensor(like, {count}, DType::I64);
  fill_values(t, Scalar(0));
  return t;
}

}  // namespace

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  STRATA_CHECK_NOT_IMPLEMENTED(is_integral(self.dtype(), false), "\"bincount_cpu\" not implemented for '",
                               scalar_type_name(self.dtype()), "'; expected integers");
  STRATA_CHECK(minlength >= 0, "minlength should be >= 0, got ", minlength);
  STRATA_CHECK(self.dim() == 1 || self.numel() == 0,
               "bincount only supports 1-d non-negative integral inputs, got shape ", self.sizes());
  if (self.dim() == 1 && self.numel() == 0) return zero_counts(self, minlength);
  STRATA_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs, got shape ", self.sizes());
  STRATA_CHECK(!weights.defined() || (weights.dim() == 1 && weights.numel() == self.numel()),
               "weights should be 1-d and have the same length as input");
  STRATA_CHECK_NOT_IMPLEMENTED(!self.is_meta() && (!weights.defined() || !weights.is_meta()),
                               "bincount: the size of the result is a matter of values, which shape-only tensors lack");
  Tensor index = as_contiguous(as_dtype(self, DType::I64));
  const int64_t* at = index.data<int64_t>();
  auto [low, high] = std::minmax_element(at, at + index.numel());
  STRATA_CHECK(*low >= 0, "bincount only supports 1-d non-negative integral inputs, got ", *low);
  const int64_t bins = std::max(minlength, checked_add(*high, 1, "bincount"));
  if (!weights.defined()) {
    Tensor out = zero_counts(self, bins);
    for (int64_t i = 0; i < index.numel(); ++i) ++out.data<int64_t>()[at[i]];
    return out;
  }
  const DType t = weights.dtype() == DType::F32 ? DType::F32 : DType::F64;
  Tensor w = as_contiguous(as_dtype(weights, t)), out = new_tensor(self, {bins}, t);
  fill_values(out, Scalar(0));
  visit_reals(t, "bincount", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>)
      for (int64_t i = 0; i < index.numel(); ++i) out.data<T>()[at[i]] += w.data<T>()[i];
  });
  return out;
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  STRATA_CHECK_NOT_IMPLEMENTED(self.dtype() == DType::F32 || self.dtype() == DType::F64 || is_half(self.dtype()),
                               "\"histogram_cpu\" not implemented for '", scalar_type_name(self.dtype()),
                               "'; convert the input with .to() first");
  STRATA_CHECK(bins > 0, "histc(): bins must be > 0, got ", bins);
  Tensor out = new_tensor(self, {bins});
  if (out.is_meta()) return out;
  Tensor x = as_contiguous(as_dtype(self, DType::F64));
  const double* at = x.data<double>();
  const int64_t n = x.numel();
  double low = min.to_double(), high = max.to_double();
  if (low == high && n > 0) {
    low = high = at[0];
    for (int64_t i = 0; i < n; ++i) {  // NaN stays and is refused below
      low = at[i] < low || at[i] != at[i] ? at[i] : low;
      high = at[i] > high || at[i] != at[i] ? at[i] : high;
    }
  }
  if (low == high) low -= 1, high += 1;
  STRATA_CHECK(std::isfinite(low) && std::isfinite(high), "histc: range of [", low, ", ", high, "] is not finite");
  STRATA_CHECK(low < high, "histc: max must be larger than min, got ", low, " and ", high);
  Tensor wide = new_tensor(self, {bins}, DType::F64);
  fill_values(wide, Scalar(0));
  double* counts = wide.data<double>();
  for (int64_t i = 0; i < n; ++i) {
    if (!(at[i] >= low && at[i] <= high)) continue;
    double place = (at[i] - low) / (high - low) * double(bins);  // NaN where the range overflows
    counts[place < double(bins) ? int64_t(place) : bins - 1] += 1;
  }
  return as_dtype(wide, self.dtype());
}

}  // namespace strata::eager
