// What derivative formulas of the table may use besides operators: arithmetic on tensors and numbers, and helpers whose
// formula is longer than a line. The families' own helpers stand in formulas_<family>.cpp.
#pragma once
#include <array>
#include <cmath>

#include "grad/formulas_attention.h"
#include "grad/formulas_conv.h"
#include "grad/formulas_decompose.h"
#include "grad/formulas_factor.h"
#include "grad/formulas_index.h"
#include "grad/formulas_linalg.h"
#include "grad/formulas_loss.h"
#include "grad/formulas_matmul.h"
#include "grad/formulas_nn.h"
#include "grad/formulas_norm.h"
#include "grad/formulas_pointwise.h"
#include "grad/formulas_reduce.h"
#include "grad/formulas_special.h"
#include "grad/formulas_view.h"
#include "grad/node.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"

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

// Functions of numbers that composed derivatives may meet.
inline bool eq(const Scalar& a, const Scalar& b) { return a.to_complex() == b.to_complex(); }
inline bool ne(const Scalar& a, const Scalar& b) { return !eq(a, b); }
inline bool gt(const Scalar& a, const Scalar& b) { return a.to_double() > b.to_double(); }
inline bool lt(const Scalar& a, const Scalar& b) { return a.to_double() < b.to_double(); }
inline bool ge(const Scalar& a, const Scalar& b) { return a.to_double() >= b.to_double(); }
inline bool le(const Scalar& a, const Scalar& b) { return a.to_double() <= b.to_double(); }
inline Scalar exp(const Scalar& a) { return std::exp(a.to_double()); }
inline Scalar log(const Scalar& a) { return std::log(a.to_double()); }
inline Scalar sqrt(const Scalar& a) { return std::sqrt(a.to_double()); }
inline Scalar abs(const Scalar& a) { return std::abs(a.to_double()); }
inline Scalar conj(const Scalar& a) { return a.conj(); }
inline Tensor where(bool c, const Tensor& a, const Tensor& b) { return c ? a : b; }
inline Tensor where(bool c, const Tensor& a, const Scalar& b) { return c ? a : ops::full_like(a, b); }
inline Tensor where(bool c, const Scalar& a, const Tensor& b) { return c ? ops::full_like(b, a) : b; }
inline Scalar where(bool c, const Scalar& a, const Scalar& b) { return c ? a : b; }

[[noreturn]] Tensor no_second_derivative(const char* op, const char* arg);

// ---- reductions
// The gradient of a reduced tensor at the shape of the input, expanded along `dim`.
Tensor expand_reduced(const Tensor& grad, IntArrayRef sizes, OptIntArrayRef dim, bool keepdim);
// A reduced result or gradient with its reduced dims put back as 1.
Tensor unsqueeze_reduced(const Tensor& t, int64_t ndim, OptIntArrayRef dim, bool keepdim);
int64_t reduced_numel(IntArrayRef sizes, OptIntArrayRef dim);
Tensor zeros_like_sizes(const Tensor& grad, IntArrayRef sizes);

// ---- copies and views
Tensor copy_src(const Tensor& grad, IntArrayRef sizes, DType dtype);
Tensor to_copy_backward(const Tensor& grad, DType dtype, Device device);
Tensor as_strided_grad(const Tensor& grad, IntArrayRef base_size, IntArrayRef base_stride, int64_t base_offset,
                       IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset);
Tensor as_strided_gather(const Tensor& grad, IntArrayRef base_stride, int64_t base_offset, IntArrayRef size,
                         IntArrayRef stride, int64_t offset);

}  // namespace formulas
}  // namespace strata
