// Copies between tensors of any dtypes and strides, and the ends of operators that write into given tensors.
#pragma once
#include <initializer_list>

#include "core/promote.h"

namespace strata::eager {

// dst[...] = src[...], src broadcast to dst; no checks beyond shapes.
void copy_values(const Tensor& dst, const Tensor& src);
void fill_values(const Tensor& dst, const Scalar& value);
// `t` itself when it is contiguous, else a contiguous copy; with a dtype, converted to it.
Tensor contiguous_copy(const Tensor& t);
Tensor as_contiguous(const Tensor& t);
Tensor as_dtype(const Tensor& t, DType dtype);
// Bools, whose bytes may be any (another dtype's, viewed), as bytes of 0 and 1; others as they are.
Tensor truths(const Tensor& t);
// In-place form of an operator without one of its own: the shape must stay, the dtype can be cast.
void check_result(const Tensor& self, const Tensor& result, const char* name);
void copy_result(const Tensor& self, const Tensor& result, const char* name);
// out= form likewise: resizes `out`, checks that the dtype can be cast.
void copy_to_out(const Tensor& out, const Tensor& result, const char* name);
void check_given(const Tensor& out, const char* name);
// What copy_to_out() refuses; where there are several results, all are asked before the first is written.
void check_out(const Tensor& out, const Tensor& result, const char* name);
// Where values of `sizes` go whose order alone counts (a range): `out`, resized where it has another number of
// elements, else a tensor for them in the order of its elements, which taken_in_order() then puts there.
Tensor output_in_order(const Tensor& out, IntArrayRef sizes, const char* name);
void taken_in_order(const Tensor& out, const Tensor& values);
// The same as copy_to_out() for a list of tensors, as many as there are results.
void copy_to_outs(TensorList outs, TensorList results, bool exact, const char* name);
// out= forms made of other operators record nothing.
void check_unrecorded(const Tensor& result, const char* name);
// For out= forms that convert nothing.
void check_exact_dtype(const Tensor& out, DType result, const char* name);
// A fresh tensor of the kind of `like`: its device, and shape-only when it is.
Tensor new_tensor(const Tensor& like, IntArrayRef sizes, DType dtype);
Tensor new_tensor(const Tensor& like, IntArrayRef sizes);
Tensor new_tensor(const Tensor& like, IntArrayRef sizes, DType dtype, MemoryFormat format);
// ChannelsLast or ChannelsLast3d when the strides of 4 or 5 dims say so: channels vary fastest, then columns, rows...
// and the batch slowest, with gaps or without.
MemoryFormat suggested_format(const Tensor& t);
// Strides of a tensor like `self`: preserved when dense, else those of elementwise results.
DimVec like_strides(const Tensor& self, std::optional<MemoryFormat> format = std::nullopt);
// A fresh contiguous result in the strides that a generated pointwise kernel would have given it for these operands.
Tensor laid_out(const Tensor& result, std::initializer_list<const Tensor*> operands);
// `t` itself when it lies in that format, else a copy that does.
Tensor in_format(const Tensor& t, MemoryFormat format);

}  // namespace strata::eager
