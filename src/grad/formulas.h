// What the text of derivatives (gen/formula.py) becomes besides operators: arithmetic on tensors and numbers, lists,
// and the functions that gen/formula.py declares as PRIMITIVES and HELPERS. The table's own formulas are in
// strata/generated/formulas.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/checked.h"
#include "core/math.h"
#include "grad/node.h"
#include "strata/generated/formulas.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/unary.h"

namespace strata {

inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::div(a, b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return ops::add(a, b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return ops::sub(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return ops::mul(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return ops::div(a, b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return ops::add(b, a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return ops::rsub(b, a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return ops::mul(b, a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return ops::mul(ops::reciprocal(b), a); }
inline Tensor operator-(const Tensor& a) { return ops::neg(a); }

Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);

namespace formulas {

// Functions of numbers.
inline bool eq(const Scalar& a, const Scalar& b) { return a.to_complex() == b.to_complex(); }
inline bool ne(const Scalar& a, const Scalar& b) { return !eq(a, b); }
inline bool gt(const Scalar& a, const Scalar& b) { return a.to_double() > b.to_double(); }
inline bool lt(const Scalar& a, const Scalar& b) { return a.to_double() < b.to_double(); }
inline bool ge(const Scalar& a, const Scalar& b) { return a.to_double() >= b.to_double(); }
inline bool le(const Scalar& a, const Scalar& b) { return a.to_double() <= b.to_double(); }
inline Scalar log(const Scalar& a) {
  return a.is_complex() ? Scalar(math::log(a.to_complex())) : Scalar(math::log(a.to_double()));
}
inline Scalar sqrt(const Scalar& a) { return std::sqrt(a.to_double()); }
inline Scalar conj(const Scalar& a) { return a.conj(); }

// ---- lists of numbers, as Python has them

inline int64_t floor_divided(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t at(IntArrayRef values, int64_t i);                    // from the end where i is negative
DimVec part(IntArrayRef values, int64_t begin, int64_t end);  // values[begin:end]
DimVec joined(IntArrayRef a, IntArrayRef b);

// ---- primitives

int64_t product(IntArrayRef values);
inline int64_t wrap_dim(int64_t dim, int64_t ndim) { return strata::wrap_dim(dim, ndim); }
DimVec inverse_order(IntArrayRef dims);
DimVec broadcast_shapes(IntArrayRef a, IntArrayRef b);
int64_t reduced_numel(IntArrayRef sizes, OptIntArrayRef dim);
Tensor unsqueeze_reduced(const Tensor& t, int64_t ndim, OptIntArrayRef dim, bool keepdim);
Tensor expand_reduced(const Tensor& t, IntArrayRef sizes, OptIntArrayRef dim, bool keepdim);
Tensor corner(const Tensor& t, IntArrayRef sizes);
Tensor at_corner(const Tensor& t, IntArrayRef sizes);
Tensor products_of_others(const Tensor& t);
bool grad_enabled();
// These read values; a tensor without any (device meta) has no true ones, and is close to all.
bool any_true(const Tensor& t);
bool allclose_to(const Tensor& t, const Tensor& expected);

// ---- helpers of single formulas

Tensor as_strided_gather(const Tensor& grad, IntArrayRef base_stride, int64_t base_offset, IntArrayRef size,
                         IntArrayRef stride, int64_t offset);

// Gradients of lists of views, of which any may be undefined.
Tensor unbind_back(const Grads& grads, int64_t dim);
Tensor split_back(const Grads& grads, IntArrayRef sizes, int64_t split_size, int64_t dim);
Tensor split_with_sizes_back(const Grads& grads, IntArrayRef sizes, IntArrayRef split_sizes, int64_t dim);

// What a node keeps of a list of tensors.
std::vector<DimVec> sizes_of(TensorList tensors);
std::vector<DType> dtypes_of(TensorList tensors);

std::vector<Tensor> cat_back(const Tensor& grad, const std::vector<DimVec>& sizes, const std::vector<DType>& dtypes,
                             int64_t dim);
std::vector<Tensor> block_diag_back(const Tensor& grad, const std::vector<DimVec>& sizes,
                                    const std::vector<DType>& dtypes);
Tensor repeat_back(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes);
std::tuple<Tensor, Tensor> householder_grad(const Tensor& grad, const Tensor& input, const Tensor& tau,
                                            const BoolVec& wanted);

}  // namespace formulas
}  // namespace strata
