// Binary search in sorted values, membership and counting.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "core/parallel.h"
#include "eager/visit.h"
#include "strata/generated/eager_search.h"

namespace strata::eager {

namespace {

bool right_side(bool right, const std::optional<std::string_view>& side) {
  if (!side) return right;
  STRATA_CHECK(*side == "left" || *side == "right", "searchsorted(): side can only be 'left' or 'right' but got ",
               *side);
  STRATA_CHECK(*side == "right" || !right, "searchsorted(): side and right can't be set to opposites, got side of ",
               *side, " while right was True");
  return *side == "right";
}

// The first position at which `after` says that the element belongs behind the value. NaN sorts last.
template <class T>
int64_t position(const T* begin, const int64_t* order, int64_t n, T value, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    T at = begin[order ? order[middle] : middle];
    bool before = right ? !(at > value) : !(at >= value);
    (before ? low : high) = before ? middle + 1 : middle;
  }
  return low;
}

Tensor search(const Tensor& sequence, const Tensor& values, bool int32, bool right, const Tensor& sorter) {
  STRATA_CHECK(sequence.dim() > 0, "searchsorted(): boundaries tensor should have positive dimension");
  const bool one = sequence.dim() == 1;
  STRATA_CHECK(values.dim() > 0 || one || sequence.numel() == 0,
               "searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
               "boundaries tensor dim(",
               sequence.dim(), ")");
  const int64_t lead = sequence.dim() - 1;
  STRATA_CHECK(
      one || (values.dim() == sequence.dim() && values.sizes().slice(0, lead) == sequence.sizes().slice(0, lead)),
      "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
      "tensor and input value tensor must match, but we got boundaries tensor ",
      sequence.sizes(), " and input value tensor ", values.sizes());
  if (sorter.defined()) {
    STRATA_CHECK(sorter.sizes() == sequence.sizes(),
                 "searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
                 sequence.sizes(), " and got sorter tensor ", sorter.sizes());
    STRATA_CHECK(sorter.dtype() == DType::I64, "searchsorted(): sorter must be a tensor of long dtype but got dtype ",
                 sorter.dtype());
  }
  ResultType common;
  common.add(sequence);
  common.add(values);
  const DType t = wide_dtype(common.get());
  STRATA_CHECK_NOT_IMPLEMENTED(values.numel() == 0 || (t != DType::Bool && !is_complex(t)),
                               "\"searchsorted\" not implemented for '", scalar_type_name(t),
                               "'; convert the operands with .to() first");
  const bool meta = sequence.is_meta() || values.is_meta() || (sorter.defined() && sorter.is_meta());
  Tensor out = make_tensor(values.sizes(), DType::I64, sequence.device(), meta);
  if (out.is_meta() || out.numel() == 0) return int32 ? as_dtype(out, DType::I32) : out;
  Tensor s = as_contiguous(as_dtype(sequence, t)), v = as_contiguous(as_dtype(values, t));
  Tensor order = sorter.defined() ? as_contiguous(sorter) : Tensor();
  const int64_t n = sequence.sizes()[lead], per_row = one || values.dim() == 0 ? 0 : values.sizes()[lead];
  if (order.defined())
    for (int64_t i = 0; i < order.numel(); ++i)
      STRATA_CHECK_INDEX(order.data<int64_t>()[i] >= 0 && order.data<int64_t>()[i] < n,
                         "searchsorted(): sorter index out of range");
  visit_reals(t, "searchsorted", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, v.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = per_row ? i / per_row * n : 0;
        out.data<int64_t>()[i] = position(
            s.data<T>() + first, order.defined() ? order.data<int64_t>() + first : nullptr, n, v.data<T>()[i], right);
      }
    });
  });
  return int32 ? as_dtype(out, DType::I32) : out;
}

Tensor zero_counts(const Tensor& like, int64_t count) {
  Tensor t = new_tensor(like, {count}, DType::I64);
  fill_values(t, Scalar(0));
  return t;
}

}  // namespace

Tensor searchsorted(const Tensor& sequence, const Tensor& values, bool int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  return search(sequence, values, int32, right_side(right, side), sorter);
}

Tensor searchsorted(const Tensor& sequence, const Scalar& value, bool int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  return search(sequence, wrapped_number(value), int32, right_side(right, side), sorter);
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool int32, bool right) {
  STRATA_CHECK(boundaries.dim() == 1, "bucketize: boundaries tensor must be 1 dimension, but got dim(",
               boundaries.dim(), ")");
  return search(boundaries, self, int32, right, {});
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  for (const Tensor* t : {&elements, &test_elements})
    STRATA_CHECK(t->dtype() != DType::Bool && !t->is_complex(),
                 "Unsupported input type encountered for isin(): ", t->dtype(),
                 "; convert the operands with .to() first");
  ResultType common;
  common.add(elements);
  common.add(test_elements);
  DType t = wide_dtype(common.get());
  const bool meta = elements.is_meta() || test_elements.is_meta();
  Tensor out = make_tensor(elements.sizes(), DType::Bool, elements.device(), meta);
  if (out.is_meta()) return out;
  Tensor e = as_contiguous(as_dtype(elements, t)), tests = as_contiguous(as_dtype(test_elements, t));
  visit_reals(t, "isin", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      std::vector<T> sorted(tests.data<T>(), tests.data<T>() + tests.numel());
      sorted.erase(std::remove_if(sorted.begin(), sorted.end(), [](T v) { return is_nan(v); }), sorted.end());
      std::sort(sorted.begin(), sorted.end());
      parallel_for(0, e.numel(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T v = e.data<T>()[i];
          bool found = !is_nan(v) && std::binary_search(sorted.begin(), sorted.end(), v);
          out.data<bool>()[i] = found != invert;
        }
      });
    }
  });
  return out;
}

Tensor isin(const Tensor& elements, const Scalar& test, bool unique, bool invert) {
  return isin(elements, wrapped_number(test), unique, invert);
}

Tensor isin(const Scalar& element, const Tensor& tests, bool unique, bool invert) {
  return isin(wrapped_number(element), tests, unique, invert);
}

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
