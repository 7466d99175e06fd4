// mm, bmm, addmm and their kin over matrix_product.
#include "strata/generated/ops/matmul.h"
#include "base/checked.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "eager/product.h"
#include "eager/view_rules.h"
#include "eager/visit.h"
#include "strata/generated/eager_matmul.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

void check_dtypes(const char* op, const char* first, const Tensor& a, const char* second, const Tensor& b) {
  STRATA_CHECK(a.dtype() == b.dtype(), "expected ", first, " and ", second, " to have the same dtype, but ", op,
               " got: ", scalar_type_name(a.dtype()), " != ", scalar_type_name(b.dtype()), "; convert one with .to()");
}

void check_mm(const char* op, const char* first, const Tensor& a, const char* second, const Tensor& b) {
  STRATA_CHECK(a.dim() == 2, first, " must be a matrix: ", op, " expected 2 dims, got ", a.dim(), "-D tensor");
  STRATA_CHECK(b.dim() == 2, second, " must be a matrix: ", op, " expected 2 dims, got ", b.dim(), "-D tensor");
  STRATA_CHECK(a.sizes()[1] == b.sizes()[0], "mat1 and mat2 shapes cannot be multiplied (", a.sizes()[0], "x",
               a.sizes()[1], " and ", b.sizes()[0], "x", b.sizes()[1], ")");
  check_dtypes(op, first, a, second, b);
}

void check_bmm(const char* op, const char* first, const Tensor& a, const char* second, const Tensor& b) {
  STRATA_CHECK(a.dim() == 3, op, ": ", first, " must be a 3D tensor, got ", a.dim(), "-D");
  STRATA_CHECK(b.dim() == 3, op, ": ", second, " must be a 3D tensor, got ", b.dim(), "-D");
  STRATA_CHECK(a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[1],
               "Expected size for first two dimensions of ", second, " tensor to be: [", a.sizes()[0], ", ",
               a.sizes()[2], "] but got: [", b.sizes()[0], ", ", b.sizes()[1], "] (", op, ").");
  check_dtypes(op, first, a, second, b);
}

bool any_meta(const Tensor& a, const Tensor& b) { return a.is_meta() || b.is_meta(); }

Tensor fresh(const Tensor& like, IntArrayRef sizes, DType dtype, bool meta) {
  return make_tensor(sizes, dtype, like.device(), meta);
}

Tensor as_column(const Tensor& v) { return v.alias({v.sizes()[0], 1}, {v.strides()[0], 1}, v.storage_offset()); }
Tensor as_vector(const Tensor& column) { return column.alias({column.sizes()[0]}, {1}, column.storage_offset()); }

// beta * self + alpha * (a @ b), rounded once: a bias goes into the product; a product of a 16-bit dtype is kept in
// float32 until the end.
Tensor add_to_product(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                      const char* op) {
  check_dtypes(op, "self", self, "the matrices", a);
  int64_t n = a.dim();
  DimVec sizes(a.sizes());
  sizes[n - 1] = b.sizes()[n - 1];
  DType t = a.dtype();
  bool meta = any_meta(a, b) || self.is_meta();
  expanded(self.sizes(), self.strides(), sizes);  // raises where self does not broadcast
  check_fits(beta, traits(t).compute);
  check_fits(alpha, traits(t).compute);
  if (is_integral(t, true) && (!alpha.is_integral(true) || !beta.is_integral(true))) {
    STRATA_CHECK(!alpha.is_complex() && !beta.is_complex(), op,
                 ": For integral input tensors, arguments alpha and beta must not be complex numbers");
    return add_to_product(self, a, b, Scalar(long(beta.to_int())), Scalar(long(alpha.to_int())), op);
  }
  if (checked_numel(sizes, op) == 0) return fresh(a, sizes, t, meta);
  gemm_kernel(t, op);  // for its error, which shape-only execution gives too
  if (meta) return fresh(a, sizes, t, true);

  bool as_bias = beta.equals(1) && alpha.equals(1) && self.dim() == 1 && self.sizes()[0] == sizes[n - 1] &&
                 (self.strides()[0] == 1 || sizes[n - 1] == 1) && t != DType::Bool;
  if (as_bias) {
    Tensor c = fresh(a, sizes, t, false);
    matrix_product(c, a, b, self, op);
    return c;
  }
  // The library adds to a bfloat16 result in float32, if it need not be scaled.
  if (t == DType::BF16 && (beta.equals(0) || beta.equals(1)) && library_takes(t, matrix_work(sizes, a.size(-1)))) {
    Tensor c = fresh(a, sizes, t, false);
    const bool adds = beta.equals(1);
    if (adds) copy_values(c, self);
    if (library_product(c, a, b, alpha.to_double(), adds, op)) return c;
  }
  bool wide = is_half(t);
  Tensor product = fresh(a, sizes, wide ? DType::F32 : t, false);
  if (!wide)
    matrix_product(product, a, b, {}, op);
  else if (!library_product(product, a, b, 1, false, op))
    matrix_product(product, as_dtype(a, DType::F32), as_dtype(b, DType::F32), {}, op);
  Tensor c = wide ? fresh(a, sizes, t, false) : product;
  const Tensor* outs[] = {&c};
  Scalar scalars[] = {beta, alpha};
  if (beta.equals(0)) {
    if (alpha.equals(1) && !wide) return product;
    const Tensor* in[] = {&product};
    pointwise_into(kernels::scale_product, {outs, 1}, {in, 1}, Scalars(scalars + 1, 1));
  } else {
    // The first operand names the compute dtype.
    Tensor start = wide ? as_dtype(self, DType::F32) : self;
    const Tensor* in[] = {&start, &product};
    pointwise_into(kernels::add_product, {outs, 1}, {in, 2}, Scalars(scalars, 2));
  }
  return c;
}

}  // namespace

Tensor mm(const Tensor& self, const Tensor& mat2) {
  check_mm("mm", "self", self, "mat2", mat2);
  Tensor c = fresh(self, {self.sizes()[0], mat2.sizes()[1]}, self.dtype(), any_meta(self, mat2));
  matrix_product(c, self, mat2, {}, "mm");
  return c;
}

Tensor bmm(const Tensor& self, const Tensor& mat2) {
  check_bmm("bmm", "batch1", self, "batch2", mat2);
  Tensor c = fresh(self, {self.sizes()[0], self.sizes()[1], mat2.sizes()[2]}, self.dtype(), any_meta(self, mat2));
  matrix_product(c, self, mat2, {}, "bmm");
  return c;
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  check_mm("addmm", "mat1", mat1, "mat2", mat2);
  return add_to_product(self, mat1, mat2, beta, alpha, "addmm");
}

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  check_bmm("baddbmm", "batch1", batch1, "batch2", batch2);
  return add_to_product(self, batch1, batch2, beta, alpha, "baddbmm");
}

namespace {
void check_mv(const char* op, const Tensor& mat, const Tensor& vec) {
  STRATA_CHECK(mat.dim() == 2 && vec.dim() == 1, op, ": vector + matrix @ vector expected, got a matrix of ", mat.dim(),
               " dims and a vector of ", vec.dim());
  STRATA_CHECK(mat.sizes()[1] == vec.sizes()[0], "size mismatch, got input (", mat.sizes()[0], "), mat (",
               mat.sizes()[0], "x", mat.sizes()[1], "), vec (", vec.sizes()[0], ")");
  check_dtypes(op, "mat", mat, "vec", vec);
}
}  // namespace

Tensor mv(const Tensor& self, const Tensor& vec) {
  check_mv("mv", self, vec);
  Tensor c = fresh(self, {self.sizes()[0], 1}, self.dtype(), any_meta(self, vec));
  matrix_product(c, self, as_column(vec), {}, "mv");
  return as_vector(c);
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) {
  check_mv("addmv", mat, vec);
  STRATA_CHECK(self.dim() <= 1 && (self.numel() == 1 || self.numel() == mat.sizes()[0]),
               "addmv: size mismatch, got input (", self.sizes(), "), mat (", mat.sizes()[0], "x", mat.sizes()[1],
               "), vec (", vec.sizes()[0], ")");
  Tensor column =
      self.dim() == 0 ? self : self.alias({self.sizes()[0], 1}, {self.strides()[0], 1}, self.storage_offset());
  return as_vector(add_to_product(column, mat, as_column(vec), beta, alpha, "addmv"));
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  check_bmm("addbmm", "batch1", batch1, "batch2", batch2);
  IntArrayRef a = batch1.sizes(), b = batch2.sizes();
  // The batch is one more summed dim.
  Tensor rows = ops::reshape(ops::permute(batch1, {1, 0, 2}), {a[1], a[0] * a[2]});
  return addmm(self, rows, ops::reshape(batch2, {b[0] * b[1], b[2]}), beta, alpha);
}

}  // namespace strata::eager
