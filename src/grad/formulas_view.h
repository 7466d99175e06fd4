// Derivative helpers of views, joins and shapes.
#pragma once
#include <vector>

#include "core/tensor.h"
#include "grad/node.h"

namespace strata::formulas {

// What a list of tensors leaves in a node instead of the tensors.
std::vector<DimVec> sizes_of(TensorList tensors);
std::vector<DType> dtypes_of(TensorList tensors);

Tensor permute_back(const Tensor& grad, IntArrayRef dims);
Tensor as_strided_scatter_grad(const Tensor& grad, IntArrayRef base_stride, int64_t base_offset, IntArrayRef size,
                               IntArrayRef stride, std::optional<int64_t> offset);

// Gradients of lists of views, of which any may be undefined.
Tensor unbind_back(const Grads& grads, int64_t dim);
Tensor split_back(const Grads& grads, IntArrayRef sizes, int64_t split_size, int64_t dim);
Tensor split_with_sizes_back(const Grads& grads, IntArrayRef sizes, IntArrayRef split_sizes, int64_t dim);

// Gradients of joined tensors: the parts of grad, in each tensor's dtype.
std::vector<Tensor> cat_back(const Tensor& grad, const std::vector<DimVec>& sizes, const std::vector<DType>& dtypes,
                             int64_t dim);
std::vector<Tensor> stack_back(const Tensor& grad, const std::vector<DType>& dtypes, int64_t dim);
std::vector<Tensor> block_diag_back(const Tensor& grad, const std::vector<DimVec>& sizes,
                                    const std::vector<DType>& dtypes);

Tensor repeat_back(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes);
Tensor constant_pad_back(const Tensor& grad, IntArrayRef pad);
Tensor complex_part(const Tensor& grad, bool imaginary);
Tensor polar_abs_back(const Tensor& grad, const Tensor& angle);
Tensor polar_angle_back(const Tensor& grad, const Tensor& result);

}  // namespace strata::formulas
