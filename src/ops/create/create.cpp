// Factories that no expression says yet: logspace, and ranges between the values of tensors; checks of others.
#include "strata/generated/ops/create.h"
#include "core/default_device.h"
#include "core/promote.h"
#include "run/bind.h"
#include "run/copy.h"
#include "run/pointwise.h"
#include "run/prepare.h"
#include "strata/generated/by_hand/create.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/power.h"

namespace strata::eager {

double range_end(const Scalar& value, DType dtype, bool imaginary) {
  if (imaginary) return value.to_complex().imag();
  if (!is_integral(dtype, false) || value.is_complex()) return value.to_complex().real();
  const int spare = 64 - traits(dtype).bits;
  const uint64_t bits = uint64_t(value.to_int()) << spare;
  return double(traits(dtype).kind == DKind::Signed ? int64_t(bits) >> spare : int64_t(bits >> spare));
}

namespace {

Tensor powers(const Scalar& first, const Scalar& last, int64_t steps, double base, DType dtype) {
  auto end_of = [&](const Scalar& value) {
    return value.is_complex() ? value : Scalar(range_end(value, dtype, false));
  };
  const bool complex = first.is_complex() || last.is_complex();
  return ops::pow(Scalar(base),
                  ops::linspace(end_of(first), end_of(last), steps, complex ? DType::C128 : DType::F64, std::nullopt));
}
}  // namespace

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, std::optional<DType> dtype,
                std::optional<Device> device) {
  const auto made = shape::spaced<int64_t>("logspace", start, end, steps, dtype);
  Tensor out = new_result(device.value_or(default_device()), made);
  copy_values(out, powers(start, end, steps, base, out.dtype()));
  return out;
}

void logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base, std::optional<DType>,
                  std::optional<Device>, const Tensor& out) {
  shape::spaced<int64_t>("logspace", start, end, steps, out.dtype());
  const Tensor row = output_in_order(out, IntArrayRef(steps), "logspace");
  check_no_overlap("logspace", out, {});
  copy_values(row, powers(start, end, steps, base, out.dtype()));
  taken_in_order(out, row);
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

void check_parts(const char* name, const Tensor& a, const Tensor& b) {
  auto fits = [](const Tensor& t) { return t.dtype() == DType::F32 || t.dtype() == DType::F64; };
  STRATA_CHECK(a.defined() && b.defined(), name, ": expected two tensors, got None");
  STRATA_CHECK(fits(a) && fits(b), name, ": Expected both inputs to be Float or Double tensors but got ",
               scalar_type_name(a.dtype()), " and ", scalar_type_name(b.dtype()),
               "; no other dtype has a complex one: convert to float32");
  STRATA_CHECK(a.dtype() == b.dtype(), name, ": Expected object of scalar type ", scalar_type_name(a.dtype()),
               " but got scalar type ", scalar_type_name(b.dtype()), " for second argument");
}

}  // namespace strata::eager
