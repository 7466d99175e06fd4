// Factories that count: arange, linspace, logspace; and complex numbers of parts.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "core/default_device.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "eager/cast.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "strata/generated/eager_create.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

// out[i] = value(i), computed in T and rounded once to the dtype of out.
template <class T, class F>
void fill_counted(const Tensor& out, DType from, F value) {
  int64_t n = out.numel();
  if (out.is_meta() || n == 0) return;
  if (!out.is_contiguous()) {
    Tensor flat = new_tensor(out, out.sizes());
    fill_counted<T>(flat, from, value);
    return copy_values(out, flat);
  }
  CastFn cast = cast_fn(from, out.dtype());
  int64_t width = out.itemsize();
  parallel_for(0, n, 32768, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 512;
    T block[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      int64_t count = std::min(kBlock, end - i);
      for (int64_t k = 0; k < count; ++k) block[k] = value(i + k);
      cast(reinterpret_cast<const char*>(block), sizeof(T), out.bytes() + i * width, width, count);
    }
  });
}

// int64 results count in int64, whatever the numbers are.
int64_t arange_count(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  STRATA_CHECK(!start.is_complex() && !end.is_complex() && !step.is_complex(),
               "arange: expected real numbers, got a complex one");
  STRATA_CHECK_NOT_IMPLEMENTED(dtype != DType::Bool,
                               "\"arange_cpu\" not implemented for 'Bool'; convert the result with .to() instead");
  if (dtype == DType::I64 && step.to_double() != 0 && std::isfinite(start.to_double()) &&
      std::isfinite(end.to_double()) && !(start.is_integral(true) && end.is_integral(true) && step.is_integral(true))) {
    STRATA_CHECK_VALUE(step.to_int() != 0, "step must be nonzero, but ", step.to_double(), " is 0 as an int64");
    return arange_count(Scalar(long(start.to_int())), Scalar(long(end.to_int())), Scalar(long(step.to_int())), dtype);
  }
  if (start.is_integral(true) && end.is_integral(true) && step.is_integral(true)) {
    int64_t a = start.to_int(), b = end.to_int(), s = step.to_int();
    STRATA_CHECK(s != 0, "step must be nonzero");
    STRATA_CHECK(s > 0 ? b >= a : b <= a, "upper bound and lower bound inconsistent with step sign");
    uint64_t span = s > 0 ? uint64_t(b) - uint64_t(a) : uint64_t(a) - uint64_t(b);
    uint64_t each = s > 0 ? uint64_t(s) : 0 - uint64_t(s);
    uint64_t n = span / each + (span % each != 0);
    STRATA_CHECK(n <= uint64_t(INT64_MAX), "invalid size, possible overflow?");
    return int64_t(n);
  }
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  STRATA_CHECK(s != 0, "step must be nonzero");
  STRATA_CHECK(std::isfinite(a) && std::isfinite(b), "unsupported range: ", a, " -> ", b);
  STRATA_CHECK(s > 0 ? b >= a : b <= a, "upper bound and lower bound inconsistent with step sign");
  double n = std::ceil((b - a) / s);
  STRATA_CHECK(n >= 0 && n <= 0x1p62, "invalid size, possible overflow?");
  return int64_t(n);
}

void arange_into(const Tensor& out, const Scalar& start, const Scalar& step) {
  if (is_integral(out.dtype(), true)) {
    uint64_t a = uint64_t(start.to_int()), s = uint64_t(step.to_int());
    fill_counted<int64_t>(out, DType::I64, [=](int64_t i) { return int64_t(a + uint64_t(i) * s); });
  } else {
    double a = start.to_double(), s = step.to_double();
    fill_counted<double>(out, DType::F64, [=](int64_t i) { return a + s * double(i); });
  }
}

// Integers take both ends rounded towards zero, as PyTorch does; the step is not rounded.
Scalar end_of_range(const Scalar& value, DType dtype) {
  if (!is_integral(dtype, false) || value.is_complex()) return value;
  int spare = 64 - traits(dtype).bits;
  uint64_t bits = uint64_t(value.to_int()) << spare;
  return Scalar(long(traits(dtype).kind == DKind::Signed ? int64_t(bits) >> spare : int64_t(bits >> spare)));
}

template <class T>
void spaced(const Tensor& out, DType from, T start, T end) {
  int64_t n = out.numel();
  T step = n > 1 ? (end - start) / double(n - 1) : T(0);
  // From both ends, so that both are exact.
  fill_counted<T>(out, from, [=](int64_t i) {
    return i < n / 2 || n == 1 ? start + step * double(i) : end - step * double(n - 1 - i);
  });
}

void linspace_into(const Tensor& out, const Scalar& first, const Scalar& last) {
  Scalar start = end_of_range(first, out.dtype()), end = end_of_range(last, out.dtype());
  if (start.is_complex() || end.is_complex())
    spaced(out, DType::C128, start.to_complex(), end.to_complex());
  else
    spaced(out, DType::F64, start.to_double(), end.to_double());
}

DType spaced_dtype(const char* name, const Scalar& start, const Scalar& end, int64_t steps,
                   std::optional<DType> dtype) {
  STRATA_CHECK(steps >= 0, "number of steps must be non-negative");
  STRATA_CHECK_NOT_IMPLEMENTED(dtype != DType::Bool || steps < 2, "\"", name, "_cpu\" not implemented for 'Bool'; ",
                               "convert the result with .to() instead");
  bool complex = start.is_complex() || end.is_complex();
  if (!dtype) return complex ? default_complex_dtype() : default_dtype();
  STRATA_CHECK(!complex || is_complex(*dtype), name, ": inferred dtype ", default_complex_dtype(),
               " can't be safely cast to passed dtype ", *dtype);
  return *dtype;
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, std::optional<DType> dtype,
              std::optional<Device> device) {
  bool integers = start.is_integral(true) && end.is_integral(true) && step.is_integral(true);
  DType kind = dtype.value_or(integers ? DType::I64 : default_dtype());
  Tensor t = make_tensor(IntArrayRef(arange_count(start, end, step, kind)), kind, device.value_or(default_device()));
  arange_into(t, start, step);
  return t;
}

Tensor arange(const Scalar& start, const Scalar& end, std::optional<DType> dtype, std::optional<Device> device) {
  return arange(start, end, Scalar(1), dtype, device);
}

Tensor arange(const Scalar& end, std::optional<DType> dtype, std::optional<Device> device) {
  return arange(Scalar(0), end, Scalar(1), dtype, device);
}

void arange_out(const Scalar& start, const Scalar& end, const Scalar& step, std::optional<DType>, std::optional<Device>,
                const Tensor& out) {
  resize_output(out, IntArrayRef(arange_count(start, end, step, out.dtype())), "arange");
  arange_into(out, start, step);
}

void arange_out(const Scalar& end, std::optional<DType> dtype, std::optional<Device> device, const Tensor& out) {
  arange_out(Scalar(0), end, Scalar(1), dtype, device, out);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, std::optional<DType> dtype,
                std::optional<Device> device) {
  DType t = spaced_dtype("linspace", start, end, steps, dtype);
  Tensor out = make_tensor(IntArrayRef(steps), t, device.value_or(default_device()));
  linspace_into(out, start, end);
  return out;
}

void linspace_out(const Scalar& start, const Scalar& end, int64_t steps, std::optional<DType>, std::optional<Device>,
                  const Tensor& out) {
  spaced_dtype("linspace", start, end, steps, out.dtype());
  resize_output(out, IntArrayRef(steps), "linspace");
  linspace_into(out, start, end);
}

namespace {
Tensor powers(const Scalar& first, const Scalar& last, int64_t steps, double base, DType dtype) {
  Scalar start = end_of_range(first, dtype), end = end_of_range(last, dtype);
  bool complex = start.is_complex() || end.is_complex();
  return ops::pow(Scalar(base), linspace(start, end, steps, complex ? DType::C128 : DType::F64, std::nullopt));
}
}  // namespace

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, std::optional<DType> dtype,
                std::optional<Device> device) {
  DType t = spaced_dtype("logspace", start, end, steps, dtype);
  Tensor out = make_tensor(IntArrayRef(steps), t, device.value_or(default_device()));
  copy_values(out, powers(start, end, steps, base, t));
  return out;
}

void logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base, std::optional<DType>,
                  std::optional<Device>, const Tensor& out) {
  spaced_dtype("logspace", start, end, steps, out.dtype());
  resize_output(out, IntArrayRef(steps), "logspace");
  copy_values(out, powers(start, end, steps, base, out.dtype()));
}

// ---- between the values of tensors

namespace {
Scalar value_of(const char* op, const char* which, const Tensor& t) {
  STRATA_CHECK(t.dim() == 0, op, " only supports 0-dimensional start and end tensors, but got ", which, " with ",
               t.dim(), " dimension(s).");
  return ops::item(t);
}
}  // namespace

Tensor linspace_tensors(const Tensor& start, const Tensor& end, int64_t steps, std::optional<DType> dtype,
                        std::optional<Device> device) {
  Scalar first = value_of("linspace", "start", start), last = value_of("linspace", "end", end);
  return ops::linspace(first, last, steps, dtype, device);
}

Tensor logspace_tensors(const Tensor& start, const Tensor& end, int64_t steps, double base, std::optional<DType> dtype,
                        std::optional<Device> device) {
  Scalar first = value_of("logspace", "start", start), last = value_of("logspace", "end", end);
  return ops::logspace(first, last, steps, base, dtype, device);
}

// ---- complex numbers of parts

namespace {
DType check_parts(const char* name, const Tensor& a, const Tensor& b) {
  auto fits = [](const Tensor& t) { return t.dtype() == DType::F32 || t.dtype() == DType::F64; };
  STRATA_CHECK(a.defined() && b.defined(), name, ": expected two tensors, got None");
  STRATA_CHECK(fits(a) && fits(b), name, ": Expected both inputs to be Float or Double tensors but got ",
               scalar_type_name(a.dtype()), " and ", scalar_type_name(b.dtype()),
               "; no other dtype has a complex one: convert to float32");
  STRATA_CHECK(a.dtype() == b.dtype(), name, ": Expected object of scalar type ", scalar_type_name(a.dtype()),
               " but got scalar type ", scalar_type_name(b.dtype()), " for second argument");
  return to_complex(a.dtype());
}
}  // namespace

Tensor complex_of_parts(const Tensor& real, const Tensor& imag) {
  DType dtype = check_parts("complex", real, imag);
  DimVec sizes = broadcast_shapes(real.sizes(), imag.sizes());
  const Tensor* in[] = {&real, &imag};
  Tensor out = make_tensor_strided(sizes, result_strides(sizes, {in, 2}), dtype, real.device(),
                                   real.is_meta() || imag.is_meta());
  Tensor parts = ops::view_as_real(out);
  copy_values(ops::select(parts, -1, 0), real);
  copy_values(ops::select(parts, -1, 1), imag);
  return out;
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  check_parts("polar", abs, angle);
  return complex_of_parts(ops::mul(abs, ops::cos(angle)), ops::mul(abs, ops::sin(angle)));
}

}  // namespace strata::eager
