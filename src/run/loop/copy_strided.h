// Elements of any strides that are copied, and converted, to where they lie otherwise.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

// `sizes` elements at `s` to `d`; strides are bytes. An element that is written more than once has one of the values.
void copy_strided(DType src, const char* s, const DimVec& from, DType dst, char* d, const DimVec& to,
                  IntArrayRef sizes);

}  // namespace strata::eager
