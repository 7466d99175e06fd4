// C++ functions of single derivatives, which gen/formula.py declares as HELPERS: loops over lists of tensors.
#pragma once
#include "grad/engine/node.h"
#include "run/formulas.h"

namespace strata::formulas {

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

}  // namespace strata::formulas
