// What text over tensors (gen/formula.py) becomes besides operators: arithmetic on tensors and numbers, lists, and the
// functions that gen/formula.py declares as PRIMITIVES. The table's own formulas are in strata/generated/formulas.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/checked.h"
#include "core/math.h"
#include "core/promote.h"
#include "core/tensor.h"
#include "run/launches.h"
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

// Integers that come from callers: what does not fit raises.
inline int64_t plus(int64_t a, int64_t b) { return checked_add(a, b, "a number of a formula"); }
inline int64_t times(int64_t a, int64_t b) { return checked_mul(a, b, "a number of a formula"); }
int64_t minus(int64_t a, int64_t b);
int64_t floor_divided(int64_t a, int64_t b);
int64_t at(IntArrayRef values, int64_t i);                    // from the end where i is negative
DimVec part(IntArrayRef values, int64_t begin, int64_t end);  // values[begin:end]
DimVec joined(IntArrayRef a, IntArrayRef b);
inline bool contains(IntArrayRef values, int64_t v) {
  return std::find(values.begin(), values.end(), v) != values.end();
}

// ---- primitives

int64_t product(IntArrayRef values);
inline int64_t wrap_dim(int64_t dim, int64_t ndim) { return strata::wrap_dim(dim, ndim); }
DimVec inverse_order(IntArrayRef dims);
DimVec broadcast_shapes(IntArrayRef a, IntArrayRef b);
DimVec row_dims(int64_t ndim, OptIntArrayRef dim);
inline DType default_dtype() { return strata::default_dtype(); }
double largest_of(DType t);
inline void check_fits(const Scalar& value, DType t) { strata::check_fits(value, t); }
inline DType promote_types(DType a, DType b) { return strata::promote_types(a, b); }
DType result_type(const Tensor& a, const Tensor& b, const Tensor& c = {});
int64_t triangle_count(int64_t rows, int64_t columns, int64_t offset, bool lower);
DimVec joined_sizes(TensorList tensors, int64_t dim);
DimVec joined_strides(TensorList tensors, int64_t dim);
DType joined_dtype(TensorList tensors);
void check_tensors(TensorList list, std::string_view op);
void check_has_values(const Tensor& t, std::string_view op);
void check_writable(TensorList list, std::string_view op);
inline eager::Launches launches(std::string_view op) { return eager::Launches(op); }
inline void launch(const eager::Launches& list) { list.run(); }
int64_t reduced_numel(IntArrayRef sizes, OptIntArrayRef dim);
Tensor wrapped_number(const Scalar& value, const Tensor& like);
bool is_viewable(const Tensor& t, IntArrayRef shape);
MemoryFormat suggested_format(const Tensor& t);
inline bool keeps_format(const Tensor& t, std::optional<MemoryFormat> format) {
  // What lies either way, since dims have one element, is told apart by its strides, as in PyTorch.
  if (!format || *format == MemoryFormat::Preserve) return true;
  return t.is_contiguous(*format) &&
         (*format == MemoryFormat::Contiguous || t.numel() == 0 || suggested_format(t) == *format);
}
Tensor unsqueeze_reduced(const Tensor& t, int64_t ndim, OptIntArrayRef dim, bool keepdim);
Tensor expand_reduced(const Tensor& t, IntArrayRef sizes, OptIntArrayRef dim, bool keepdim);
Tensor corner(const Tensor& t, IntArrayRef sizes);
Tensor at_corner(const Tensor& t, IntArrayRef sizes);
Tensor products_of_others(const Tensor& t);
bool grad_enabled();
inline Scalar integers_between(int64_t first, const Scalar& last) {
  return Scalar::from_u64(uint64_t(last.to_int()) - uint64_t(first) + 1);
}
inline void warn(std::string_view text) { strata::warn(std::string(text)); }
// Facts of dtypes.
double least(DType t);
double largest(DType t);
Scalar last_integer(DType t);
// These read values; of a tensor without any (device meta) none is true, nor false.
bool truth(const Tensor& t);  // of one element; raises where it has no value
Scalar element(const Tensor& t);
int64_t integer(const Tensor& t);
bool any_true(const Tensor& t);
bool may_be_true(const Tensor& t);  // or its values are not at hand: a subclass holds them
bool all_true(const Tensor& t);

}  // namespace formulas
}  // namespace strata
