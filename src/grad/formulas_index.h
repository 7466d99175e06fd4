// Derivatives of indexing, scattering, masking, sorting, scans and rearrangements.
#pragma once
#include <array>

#include "core/tensor.h"

namespace strata::formulas {

// Raises: the operator has no derivative; `instead` says what to do.
[[noreturn]] Tensor no_derivative(const char* op, const char* instead);
Tensor zero_of(const Tensor& grad);  // a 0-dim zero of grad's kind

// ---- index, scatter and masks
Tensor index_backward(const Tensor& grad, IntArrayRef sizes, TensorList indices);
Tensor index_select_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index);
// The slices of grad that an index names, for an operand of shape `sizes` that gave them.
Tensor rows_of(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes);
Tensor index_fill_value_backward(const Tensor& grad, int64_t dim, const Tensor& index);
Tensor take_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& index);
Tensor put_zeros(const Tensor& grad, const Tensor& index);
Tensor gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index);
// grad gathered at index, with zeros for the elements of `sizes` that index does not reach.
Tensor gather_for(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes);
std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                                   const Tensor& index, const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result);
Tensor masked_fill_value_backward(const Tensor& grad, const Tensor& mask);
Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask);
Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes);

// ---- order and rank
// Zeros of shape `sizes` with the gradients of chosen values at their positions.
Tensor place_values(const Tensor& grad, int64_t dim, const Tensor& indices, IntArrayRef sizes, bool keepdim);
// The gradient of one chosen value, shared by the elements that equal it.
Tensor spread_evenly(const Tensor& grad, const Tensor& self, const Tensor& result);

// ---- scans (formulas_scan.cpp)
Tensor reversed_sum(const Tensor& grad, int64_t dim);
Tensor cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim);
std::tuple<Tensor, Tensor> linear_scan_backward(const Tensor& grad, const Tensor& factor, const Tensor& result,
                                                int64_t dim);
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);

// ---- rearrangements (formulas_arrange.cpp)
Tensor diagonal_backward(const Tensor& grad, IntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2);
Tensor trace_backward(const Tensor& grad, IntArrayRef sizes);
DimVec negated(IntArrayRef values);

}  // namespace strata::formulas
