// What `check:` of the table calls.
#include "run/bind.h"
#include "base/checked.h"
#include "core/promote.h"

namespace strata::eager {

namespace {
template <class Other>
void check_kind(const Tensor& self, const Other& other, const Scalar& alpha) {
  ResultType r;
  r.add(self);
  r.add(other);
  DType t = r.get();
  STRATA_CHECK(!alpha.is_bool() || t == DType::Bool, "Boolean alpha only supported for Boolean results.");
  STRATA_CHECK(!is_integral(t, true) || alpha.is_integral(true),
               "For integral input tensors, argument alpha must not be a floating point number.");
  STRATA_CHECK(strata::is_complex(t) || !alpha.is_complex(),
               "For non-complex input tensors, argument alpha must not be a complex number.");
}
}  // namespace

void check_alpha_kind(const Tensor& self, const Tensor& other, const Scalar& alpha) { check_kind(self, other, alpha); }
void check_alpha_kind(const Tensor& self, const Scalar& other, const Scalar& alpha) { check_kind(self, other, alpha); }

void refuse_bools(bool both) {
  throw_error(ErrorKind::Runtime, both ? "Subtraction, the `-` operator, with two bool tensors is not supported. "
                                         "Use the `^` or `logical_xor()` operator instead."
                                       : "Subtraction, the `-` operator, with a bool tensor is not supported. If you "
                                         "are trying to invert a mask, use the `~` or `logical_not()` operator "
                                         "instead.");
}

void check_scale(const Tensor& self, const Scalar& alpha) {
  STRATA_CHECK(!(alpha.is_complex() && !self.is_complex()) && !(alpha.is_float() && is_integral(self.dtype(), true)),
               "For integral input tensors, argument alpha must not be a floating point number.");
}

void check_fill(const Tensor& self, const Scalar& value) {
  STRATA_CHECK(!value.is_complex() || self.is_complex(),
               "index_fill_(): Converting complex Scalar to non-complex type is not supported");
}

void check_one_dtype(const char* op, const Tensor& self, const Tensor& other, const char* argument) {
  STRATA_CHECK(self.dtype() == other.dtype(), op, ": argument ", argument, ": expected dtype ", self.dtype(),
               ", the input's, got ", other.dtype());
}

void check_some(const Tensor& self, OptIntArrayRef dims, const char* op) {
  if (self.numel() != 0) return;
  STRATA_CHECK(dims && !dims->empty(), op,
               "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
               "'dim' argument.");
  for (int64_t d : *dims)
    STRATA_CHECK_INDEX(self.sizes()[wrap_dim(d, self.dim())] != 0, op, "(): Expected reduction dim ", d,
                       " to have non-zero size.");
}

void check_hardtanh(const Tensor& self, const Scalar& min, const Scalar& max) {
  STRATA_CHECK(self.dtype() != DType::Bool, "Bool inputs not supported for hardtanh");
  STRATA_CHECK(traits(self.dtype()).kind != DKind::Unsigned || (min.to_int() >= 0 && max.to_int() >= 0),
               "cannot do hardtanh on an unsigned type with negative limits");
}

void check_softshrink(const Tensor& self, const Scalar& lambd) {
  STRATA_CHECK(lambd.to_double() >= 0, "lambda must be in range [0, inf) for input dtype ",
               scalar_type_name(self.dtype()), ", but found ", lambd.to_double());
}

Tensor fitting_number(const Scalar& value, const Tensor& other) {
  ResultType r;
  r.add(value);
  r.add(other);
  const DType t = r.get();
  if (t != DType::F16 && t != DType::BF16) check_fits(value, t);  // halves round to infinity
  return wrapped_number(value);
}

}  // namespace strata::eager
