// Sizes and strides of views.
#pragma once
#include <utility>

#include "core/tensor.h"

namespace strata::eager {

std::pair<DimVec, DimVec> expanded(IntArrayRef sizes, IntArrayRef strides, IntArrayRef wanted);
// `wanted` with its one -1 replaced.
DimVec inferred_sizes(IntArrayRef wanted, int64_t numel);
// Strides under which the same elements have the sizes `wanted`; none when they need a copy.
std::optional<DimVec> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef wanted);
std::optional<DimVec> view_strides(const Tensor& self, IntArrayRef wanted);
// dst[i] += src[i] in the order of i; elements of dst may coincide.
void add_in_order(const Tensor& dst, const Tensor& src);

}  // namespace strata::eager
