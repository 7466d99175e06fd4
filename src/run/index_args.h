// Checks and conversions of index operands.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

// Whether all values of an int64 index lie in [low, high); else the first one that does not.
std::optional<int64_t> first_outside(const Tensor& index, int64_t low, int64_t high);
// Raises "index 5 is out of bounds for dimension 0 with size 3" as an error of `kind`.
void check_index_range(const Tensor& index, int64_t size, int64_t dim, ErrorKind kind, const char* prefix = "");
// The written-to operand of an in-place operator must be one element per place, apart from what is read.
void check_apart(const char* name, const Tensor& self, std::initializer_list<const Tensor*> read);
// Reading an operator's result needs a value: raises on shape-only tensors.
void check_has_values(const char* name, const Tensor& t);
// Flat positions, in logical order, of the elements of `t` that are not zero: int64, 1-d.
Tensor flat_nonzero(const Tensor& t);
// int64 positions in a tensor of `sizes` as one row per position, or (transposed) as one tensor per dim.
Tensor coordinates(const Tensor& flat, IntArrayRef sizes);
std::vector<Tensor> coordinate_columns(const Tensor& flat, IntArrayRef sizes);

}  // namespace strata::eager
