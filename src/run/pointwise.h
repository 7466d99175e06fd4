// Runs generated pointwise kernels over tensors: result type, broadcasting, strides, memory of results, threads.
#pragma once
#include <atomic>

#include "core/tensor.h"
#include "lower/kernel_abi.h"

namespace strata::eager {

// The dtype in which an operator computes, from its operands (`promote:` of the table).
enum class Promote : uint8_t {
  Common,    // PyTorch's result type
  Float,     // the same, integers become the default float dtype
  First,     // the first operand's dtype, whatever the others are
  Sum,       // integers and bool become int64
  Floating,  // floating point and complex only; others raise
};

// Of a new result: dims in order, as the operands' (of a shape rule: self's), or channels last where they are and else
// in order (`strides:` of the table).
enum class ResultStrides : uint8_t { Contiguous, Preserve, Suggested };

struct PointwiseOp {
  const char* name;    // "aten::add.Tensor", for errors
  const char* kernel;  // stem of the generated kernel
  Promote promote = Promote::Common;
  uint8_t inputs = 0, scalars = 0, outputs = 1;
  uint32_t fixed = 0;  // bit i: input i keeps the dtype `fixed_dtype` and takes no part in promotion
  DType fixed_dtype = DType::Bool;
  ResultStrides strides = ResultStrides::Preserve;
  bool exact_out = false;   // out= takes the result's dtype alone
  uint32_t unpromoted = 0;  // bit i: scalar i takes no part in the result type
  uint32_t checked = 0;     // bit i: scalar i must fit the compute dtype; others stand for tensors, which wrap
  uint32_t narrow = 0;      // bit i: scalar i must fit the dtype of the operands
  mutable std::atomic<const StrataKernelEntry*> cache[kDTypeCount] = {};
  mutable std::atomic<uint32_t> generation{0};
};

using Inputs = ArrayRef<const Tensor*>;
using Scalars = ArrayRef<Scalar>;

// Results of new tensors.
Tensor pointwise(const PointwiseOp& op, Inputs in, Scalars scalars);
// The same, computed in `dtype`, and rounded to `stored`; vectors lie along dim `along` of the operands of more dims.
Tensor pointwise(const PointwiseOp& op, Inputs in, Scalars scalars, std::optional<DType> dtype,
                 std::optional<DType> stored, std::optional<int64_t> along = std::nullopt);
// Writes `out`, which is resized when `resize` (out= forms) and must have the broadcast shape otherwise (in place).
void pointwise_out(const PointwiseOp& op, Inputs in, Scalars scalars, const Tensor& out, bool resize);
// Several outputs, all of the inputs' shape and dtype rule; they may be the inputs themselves (optimiser steps).
void pointwise_into(const PointwiseOp& op, ArrayRef<const Tensor*> outs, Inputs in, Scalars scalars,
                    std::optional<int64_t> along = std::nullopt);

// A launch as LaunchObserver::pointwise tells it: everything is prepared.
void launch(const PointwiseOp& op, DType dtype, ArrayRef<const Tensor*> outs, Inputs in, Scalars scalars);

// The entry of `op` for dtype t, or a NotImplementedError that names both.
const StrataKernelEntry& kernel_for(const PointwiseOp& op, DType t);
// The dtype that `op` computes in, by its rule.
DType compute_dtype(const char* name, Promote promote, uint32_t fixed, Inputs in, Scalars scalars,
                    uint32_t unpromoted = 0);
// Gives `out` the wanted sizes (out= forms): empty ones quietly, others with PyTorch's warning.
void resize_output(const Tensor& out, IntArrayRef sizes, const char* name);
// Raises for operands whose memory is gone.
void check_memory(Inputs in);
// What resize_output() refuses.
void check_resize(const Tensor& out, IntArrayRef sizes, const char* name);
// Sets sizes of `t`, growing its storage as needed.
void resize_tensor(const Tensor& t, IntArrayRef sizes);
void check_no_overlap(const char* name, const Tensor& out, Inputs in);
// Strides of a fresh result of shape `sizes`, following the order of the inputs' strides as PyTorch does.
DimVec result_strides(IntArrayRef sizes, Inputs in);
DimVec result_strides(ResultStrides rule, IntArrayRef sizes, Inputs in);

}  // namespace strata::eager
