#include <cmath>

#include "core/promote.h"
#include "eager/copy.h"
#include "strata/generated/eager_vector_norm.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/unary.h"

namespace strata::eager {

namespace {

Tensor p_norm(const Tensor& self, double p, OptIntArrayRef dim, bool keepdim, std::optional<DType> dtype,
              const char* op) {
  STRATA_CHECK(is_differentiable(self.dtype()), op, ": Expected a floating point or complex tensor as input. Got ",
               scalar_type_name(self.dtype()));
  if (dtype) {
    STRATA_CHECK(is_differentiable(*dtype) && strata::is_complex(*dtype) == self.is_complex(), op, ": dtype should be ",
                 self.is_complex() ? "complex" : "floating-point", " for ",
                 self.is_complex() ? "complex" : "floating-point", " inputs, but got ", *dtype);
    STRATA_CHECK(promote_types(self.dtype(), *dtype) == *dtype, op, ": the dtype of the input (", self.dtype(),
                 ") should be convertible without narrowing to the specified dtype (", *dtype, ")");
  }
  Tensor x = dtype ? as_dtype(self, *dtype) : self;
  DimVec dims = row_dims(x, dim);
  bool empty = false;
  for (int64_t d : dims) empty |= x.sizes()[d] == 0;
  STRATA_CHECK(!empty || (p >= 0 && !std::isinf(p)), op, " cannot compute the ", p,
               " norm on an empty dimension because the operation does "
               "not have an identity");
  const Tensor* in[] = {&x};
  const RowsOp* kernel = p == 2   ? &kernels::norm_two
                         : p == 1 ? &kernels::norm_one
                         : p == 0 ? &kernels::norm_zero
                                  : nullptr;
  if (std::isinf(p)) kernel = p > 0 ? &kernels::norm_largest : &kernels::norm_smallest;
  if (kernel) return rows(*kernel, {in, 1}, {}, dims, keepdim)[0];
  Tensor real = x.is_complex() ? ops::abs(x) : x;
  Tensor wide = real.dtype() == DType::F16 || real.dtype() == DType::BF16 ? as_dtype(real, DType::F32) : real;
  const Tensor* powers[] = {&wide};
  Scalar e(p);
  Tensor sum = rows(kernels::power_sum, {powers, 1}, Scalars(&e, 1), dims, keepdim)[0];
  return as_dtype(ops::pow(sum, Scalar(1.0 / p)), real.dtype());
}

double order(const std::optional<Scalar>& p) { return p ? p->to_double() : 2.0; }

}  // namespace

Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord, OptIntArrayRef dim, bool keepdim,
                          std::optional<DType> dtype) {
  STRATA_CHECK(!ord.is_complex(), "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  return p_norm(self, ord.to_double(), dim, keepdim, dtype, "linalg.vector_norm");
}
Tensor norm_all(const Tensor& self, const Scalar& p) {
  return p_norm(self, p.to_double(), std::nullopt, false, std::nullopt, "norm");
}
Tensor norm_dim(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim) {
  return p_norm(self, order(p), dim, keepdim, std::nullopt, "norm");
}
Tensor norm_all_dtype(const Tensor& self, const std::optional<Scalar>& p, DType dtype) {
  return p_norm(self, order(p), std::nullopt, false, dtype, "norm");
}
Tensor norm_dim_dtype(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, DType dtype) {
  return p_norm(self, order(p), dim, keepdim, dtype, "norm");
}

}  // namespace strata::eager
