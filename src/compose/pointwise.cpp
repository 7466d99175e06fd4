// Pointwise operators that choose between kernels.
#include <limits>

#include "core/promote.h"
#include "run/bind.h"
#include "run/copy.h"
#include "run/visit.h"
#include "strata/generated/by_hand/pointwise.h"
#include "strata/generated/by_hand/power.h"
#include "strata/generated/by_hand/unary.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/power.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

double largest_of(DType t) {
  switch (t) {
    case DType::F16:
      return 65504.0;
    case DType::BF16:
      return 0x1.fep127;
    case DType::F64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

Scalar smallest_value(DType t) {
  if (!is_integral(t, true)) return -std::numeric_limits<double>::infinity();
  if (traits(t).kind != DKind::Signed) return Scalar(0);
  return static_cast<long>(uint64_t(-1) << (traits(t).bits - 1));
}

Scalar largest_value(DType t) {
  if (!is_integral(t, true)) return std::numeric_limits<double>::infinity();
  if (t == DType::Bool) return Scalar(1);
  int bits = traits(t).bits - (traits(t).kind == DKind::Signed ? 1 : 0);
  return Scalar::from_u64(bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1);
}

namespace {
void check_clamp(const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  STRATA_CHECK(min || max, "clamp: At least one of 'min' or 'max' must not be None");
}
}  // namespace

Scalar lowest_scalar(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  check_clamp(min, max);
  return max->is_float() && is_integral(self.dtype(), true) ? smallest_value(DType::F32) : smallest_value(self.dtype());
}

Scalar highest_scalar(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  check_clamp(min, max);
  const bool wider = self.dtype() == DType::Bool && !min->is_bool();  // the result is of int64
  return min->is_float() && is_integral(self.dtype(), true) ? largest_value(DType::F32)
                                                            : largest_value(wider ? DType::I64 : self.dtype());
}

// ---- quotients with a rounding mode

namespace {
template <class Divisor>
Tensor divide(const Tensor& self, const Divisor& other, std::optional<std::string_view> mode) {
  if (!mode) return ops::div(self, other);
  bool floor = *mode == "floor";
  STRATA_CHECK(floor || *mode == "trunc",
               "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode, "'");
  Tensor divisor;
  if constexpr (std::is_same_v<Divisor, Scalar>)
    divisor = wrapped_number(other);
  else
    divisor = other;
  return floor ? ops::_div_floor(self, divisor) : ops::_div_trunc(self, divisor);
}
}  // namespace

Tensor div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  return divide(self, other, mode);
}
Tensor div_mode(const Tensor& self, const Scalar& other, std::optional<std::string_view> mode) {
  return divide(self, other, mode);
}

Tensor clamp_tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  STRATA_CHECK(min.defined() || max.defined(), "clamp: At least one of 'min' or 'max' must not be None");
  if (!max.defined()) return ops::clamp_min(self, min);
  return min.defined() ? ops::_clamp_between(self, min, max) : ops::clamp_max(self, max);
}

// ---- powers in double precision

namespace {
DType power_dtype(bool is_complex) { return is_complex ? DType::C128 : DType::F64; }
template <class Exponent>
void raise_inplace(const Tensor& self, const Exponent& exponent) {
  DType wanted = power_dtype(self.is_complex() || exponent.is_complex());
  STRATA_CHECK(self.dtype() == wanted, "the base given to float_power_ has dtype ", scalar_type_name(self.dtype()),
               " but the operation's result requires dtype ", scalar_type_name(wanted));
  ops::pow_(self, exponent);
}
}  // namespace

void float_power_inplace(const Tensor& self, const Tensor& exponent) { raise_inplace(self, exponent); }
void float_power_inplace(const Tensor& self, const Scalar& exponent) { raise_inplace(self, exponent); }

// ---- functions of one tensor

Tensor positive(const Tensor& self) {
  STRATA_CHECK(self.dtype() != DType::Bool, "The `+` operator, on a bool tensor is not supported.");
  return self;
}

Tensor isreal(const Tensor& self) {
  if (self.is_complex()) return ops::eq(ops::imag(self), Scalar(0));
  return ops::full_like(self, Scalar(true), DType::Bool);
}

// The sum over j < p of lgamma(x - j / 2), and a constant.
Tensor mvlgamma(const Tensor& self, int64_t p) {
  const int64_t most = 1 << 16;  // one term each
  STRATA_CHECK(p >= 1 && p <= most, "mvlgamma: argument p: expected a dimension from 1 to ", most, ", got ", p);
  STRATA_CHECK(self.dtype() != DType::Bool, "The input tensor may not be a boolean tensor.");
  STRATA_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"mvlgamma\" not implemented for '", scalar_type_name(self.dtype()),
                               "'; it takes real numbers");
  if (is_half(self.dtype())) return ops::to(ops::mvlgamma(ops::to(self, DType::F32), p), self.dtype());
  Tensor x = ops::contiguous(is_float(self.dtype()) ? self : ops::to(self, default_dtype()));
  Tensor r = ops::add(ops::lgamma(x), Scalar(double(p) * double(p - 1) * 0.28618247146235004));  // log(pi) / 4
  for (int64_t j = 1; j < p; ++j) r = ops::add(r, ops::lgamma(ops::sub(x, Scalar(double(j) / 2))));
  return r;
}

}  // namespace strata::eager
