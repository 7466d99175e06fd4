#include "core/shape/create.h"

#include <cmath>

#include "base/checked.h"

namespace strata::shape {
namespace {

bool is_complex(const Scalar& a, const Scalar& b) { return a.is_complex() || b.is_complex(); }

// int64 results count in int64, whatever the numbers are.
int64_t count(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  const bool integers = start.is_integral(true) && end.is_integral(true) && step.is_integral(true);
  if (dtype == DType::I64 && !integers && step.to_double() != 0 && std::isfinite(start.to_double()) &&
      std::isfinite(end.to_double())) {
    STRATA_CHECK_VALUE(step.to_int() != 0, "step must be nonzero, but ", step.to_double(), " is 0 as an int64");
    return count(Scalar(long(start.to_int())), Scalar(long(end.to_int())), Scalar(long(step.to_int())), dtype);
  }
  if (integers) {
    const int64_t a = start.to_int(), b = end.to_int(), s = step.to_int();
    STRATA_CHECK(s != 0, "step must be nonzero");
    STRATA_CHECK(s > 0 ? b >= a : b <= a, "upper bound and lower bound inconsistent with step sign");
    const uint64_t span = s > 0 ? uint64_t(b) - uint64_t(a) : uint64_t(a) - uint64_t(b);
    const uint64_t each = s > 0 ? uint64_t(s) : 0 - uint64_t(s);
    const uint64_t n = span / each + (span % each != 0);
    STRATA_CHECK(n <= uint64_t(INT64_MAX), "invalid size, possible overflow?");
    return int64_t(n);
  }
  const double a = start.to_double(), b = end.to_double(), s = step.to_double();
  STRATA_CHECK(s != 0, "step must be nonzero");
  STRATA_CHECK(std::isfinite(a) && std::isfinite(b), "unsupported range: ", a, " -> ", b);
  STRATA_CHECK(s > 0 ? b >= a : b <= a, "upper bound and lower bound inconsistent with step sign");
  const double n = std::ceil((b - a) / s);
  STRATA_CHECK(n >= 0 && n <= 0x1p62, "invalid size, possible overflow?");
  return int64_t(n);
}

}  // namespace

template <class S>
Output<S> scalar_tensor(const Scalar& value, const std::optional<DType>& dtype) {
  const DType t = dtype.value_or(default_dtype());
  const bool half = t == DType::F16 || t == DType::BF16;
  check_fits(value, half ? DType::F64 : t);
  return {{}, t};
}

template <class S>
Output<S> eye(const S& n, const S& m, const std::optional<DType>& dtype) {
  STRATA_CHECK(n >= S(0), "n must be greater or equal to 0, got ", n);
  STRATA_CHECK(m >= S(0), "m must be greater or equal to 0, got ", m);
  return {{n, m}, dtype.value_or(default_dtype())};
}

template <class S>
Output<S> range(const Scalar& start, const Scalar& end, const Scalar& step, const std::optional<DType>& dtype) {
  const bool integers = start.is_integral(true) && end.is_integral(true) && step.is_integral(true);
  const DType t = dtype.value_or(integers ? DType::I64 : default_dtype());
  STRATA_CHECK(!start.is_complex() && !end.is_complex() && !step.is_complex(),
               "arange: expected real numbers, got a complex one");
  STRATA_CHECK_NOT_IMPLEMENTED(t != DType::Bool,
                               "\"arange_cpu\" not implemented for 'Bool'; convert the result with .to() instead");
  return {{S(count(start, end, step, t))}, t};
}

template <class S>
Output<S> spaced(const char* op, const Scalar& start, const Scalar& end, const S& steps,
                 const std::optional<DType>& dtype) {
  STRATA_CHECK(steps >= S(0), "number of steps must be non-negative");
  STRATA_CHECK_NOT_IMPLEMENTED(dtype != DType::Bool || steps < S(2), "\"", op, "_cpu\" not implemented for 'Bool'; ",
                               "convert the result with .to() instead");
  const bool complex = is_complex(start, end);
  const DType t = dtype.value_or(complex ? default_complex_dtype() : default_dtype());
  STRATA_CHECK(!complex || is_complex(t), op, ": inferred dtype ", default_complex_dtype(),
               " can't be safely cast to passed dtype ", t);
  if (steps >= S(2)) {
    check_fits(start, t);
    check_fits(end, t);
  }
  return {{steps}, t};
}

template <class S>
Layout<S> empty_strided(ArrayRef<S> size, ArrayRef<S> stride, const std::optional<DType>& dtype) {
  STRATA_CHECK(size.size() == stride.size(), "empty_strided: dimensionality of sizes (", size.size(),
               ") must match dimensionality of strides (", stride.size(), ")");
  for (const S& s : stride) STRATA_CHECK(s >= S(0), "empty_strided: expected strides of 0 or more, got ", stride);
  return {size, dtype.value_or(default_dtype()), MemoryFormat::Contiguous, true, stride};
}

template <class S>
Layout<S> empty_permuted(ArrayRef<S> size, ArrayRef<int64_t> layout, const std::optional<DType>& dtype) {
  const int64_t n = int64_t(size.size());
  STRATA_CHECK(n == int64_t(layout.size()),
               "empty_permuted: Number of dimensions in size does not match the length of the physical_layout; i.e. "
               "len(size) = ",
               n, " is not equal to len(physical_layout) = ", layout.size());
  if constexpr (std::is_same_v<S, int64_t>) checked_numel(size, "empty_permuted");
  Sizes<S> strides(size.size());
  SmallVec<bool, 8> placed(size.size(), false);
  S step(1);
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t d = layout[size_t(i)];
    STRATA_CHECK(d >= 0 && d < n, "empty_permuted: Dimension out of range (expected to be between 0 and ", n - 1,
                 ", but got ", d, " at index ", i, ").  NB: negative dims not currently supported");
    STRATA_CHECK(!placed[size_t(d)], "empty_permuted: Duplicate dim not allowed: ", d, " in physical_layout ", layout);
    placed[size_t(d)] = true;
    strides[size_t(d)] = step;
    step = times<S>(step, larger(size[size_t(d)], S(1)));
  }
  return {size, dtype.value_or(default_dtype()), MemoryFormat::Contiguous, true, std::move(strides)};
}

#define STRATA_RULES(S)                                                                                        \
  template Output<S> scalar_tensor(const Scalar&, const std::optional<DType>&);                                \
  template Output<S> eye(const S&, const S&, const std::optional<DType>&);                                     \
  template Output<S> range(const Scalar&, const Scalar&, const Scalar&, const std::optional<DType>&);          \
  template Output<S> spaced(const char*, const Scalar&, const Scalar&, const S&, const std::optional<DType>&); \
  template Layout<S> empty_strided(ArrayRef<S>, ArrayRef<S>, const std::optional<DType>&);                     \
  template Layout<S> empty_permuted(ArrayRef<S>, ArrayRef<int64_t>, const std::optional<DType>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
