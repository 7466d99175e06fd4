// mm, bmm, addmm and their kin over matrix_product: the CPU's schedule of their texts.
#include "strata/generated/by_hand/matmul.h"
#include "base/checked.h"
#include "ops/matmul/product.h"
#include "run/bind.h"
#include "run/copy.h"
#include "run/loop/cast.h"
#include "run/pointwise.h"
#include "run/visit.h"
#include "strata/generated/kernel_ops.h"

namespace strata::eager {

namespace {

Tensor as_column(const Tensor& v) { return v.alias({v.sizes()[0], 1}, {v.strides()[0], 1}, v.storage_offset()); }

template <class Bits>
bool any_equal(const Tensor& t, Bits wanted) {
  const Bits* p = static_cast<const Bits*>(t.data_ptr());
  for (int64_t k = 0; k < t.numel(); ++k)
    if (p[k] == wanted) return true;
  return false;
}

// Of a vector without gaps.
bool holds_negative_zero(const Tensor& t) {
  if (!is_float(t.dtype())) return false;
  switch (t.itemsize()) {
    case 2:
      return any_equal(t, uint16_t(0x8000));
    case 4:
      return any_equal(t, uint32_t(1) << 31);
    default:
      return any_equal(t, uint64_t(1) << 63);
  }
}

// Whether `self` goes into the product as a bias: one more chain, which begins at 0, so that a -0 would be lost.
bool is_bias(const Tensor& self, const Tensor& result, int64_t k, const Scalar& beta, const Scalar& alpha) {
  const int64_t n = result.sizes().back();
  return beta.equals(1) && alpha.equals(1) && self.dim() == 1 && self.sizes()[0] == n &&
         (self.strides()[0] == 1 || n == 1) && !self.is_complex() &&
         (library_takes(result.dtype(), matrix_work(result.sizes(), k)) || !holds_negative_zero(self));
}

// beta * self + alpha * (a @ b), rounded once: a bias goes into the product; a product of a 16-bit dtype is kept in
// float32 until the end.
void add_to_product(const Tensor& result, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                    const Scalar& alpha, const char* op) {
  if (result.numel() == 0) return;
  const DType t = result.dtype();
  if (is_bias(self, result, a.size(-1), beta, alpha)) return matrix_product(result, a, b, self, op);
  // The library adds to a bfloat16 result in float32, if it need not be scaled.
  if (t == DType::BF16 && (beta.equals(0) || beta.equals(1)) &&
      library_takes(t, matrix_work(result.sizes(), a.size(-1)))) {
    const bool adds = beta.equals(1);
    if (adds) copy_values(result, self);
    if (library_product(result, a, b, alpha.to_double(), adds, op)) return;
  }
  const bool wide = is_half(t);
  const Tensor product = wide ? new_tensor(result, result.sizes(), DType::F32) : result;
  if (!wide)
    matrix_product(product, a, b, {}, op);
  else if (!library_product(product, a, b, 1, false, op))
    matrix_product(product, as_dtype(a, DType::F32), as_dtype(b, DType::F32), {}, op);
  const Tensor* outs[] = {&result};
  const Scalar scalars[] = {product_number(beta, t), product_number(alpha, t)};
  if (beta.equals(0)) {
    if (alpha.equals(1) && !wide) return;
    const Tensor* in[] = {&product};
    pointwise_into(kernels::scale_product, {outs, 1}, {in, 1}, Scalars(scalars + 1, 1));
  } else {
    // The first operand names the compute dtype.
    const Tensor start = wide ? as_dtype(self, DType::F32) : self;
    const Tensor* in[] = {&start, &product};
    pointwise_into(kernels::add_product, {outs, 1}, {in, 2}, Scalars(scalars, 2));
  }
}

}  // namespace

void check_product_numbers(const Scalar& beta, const Scalar& alpha, DType dtype, const char* op) {
  check_fits(beta, traits(dtype).compute);
  check_fits(alpha, traits(dtype).compute);
  STRATA_CHECK(!is_integral(dtype, true) || (!beta.is_complex() && !alpha.is_complex()), op,
               ": For integral input tensors, arguments alpha and beta must not be complex numbers");
}

Scalar product_number(const Scalar& value, DType dtype) {
  return is_integral(dtype, true) && !value.is_integral(true) ? Scalar(long(value.to_int())) : value;
}

void mm(const Tensor& result, const Tensor& self, const Tensor& mat2) { matrix_product(result, self, mat2, {}, "mm"); }

void bmm(const Tensor& result, const Tensor& self, const Tensor& mat2) {
  matrix_product(result, self, mat2, {}, "bmm");
}

void addmm(const Tensor& result, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha) {
  add_to_product(result, self, mat1, mat2, beta, alpha, "addmm");
}

void baddbmm(const Tensor& result, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
             const Scalar& alpha) {
  add_to_product(result, self, batch1, batch2, beta, alpha, "baddbmm");
}

void mv(const Tensor& result, const Tensor& self, const Tensor& vec) {
  matrix_product(as_column(result), self, as_column(vec), {}, "mv");
}

void addmv(const Tensor& result, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
           const Scalar& alpha) {
  add_to_product(as_column(result), self.dim() ? as_column(self) : self, mat, as_column(vec), beta, alpha, "addmv");
}

}  // namespace strata::eager
