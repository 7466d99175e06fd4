// Runs space kernels (`space:` of the table) over tensors: which dim of each tensor is which, strides, threads.
#pragma once
#include <atomic>

#include "core/shape/prepared.h"
#include "core/tensor.h"
#include "lower/kernel_abi.h"

namespace strata::eager {

struct SpaceOp {
  const char* name;    // of the kernel in the table
  bool moves = false;  // elements as they are, whatever they are
  // The kernel that does the same with an index of one dim (times a scalar, if it has one).
  const SpaceOp* lines = nullptr;
  // By dtype and form (rank of a computed group, whether the plain group has a range inside, whether in chains).
  mutable std::atomic<const StrataSpaceEntry*> cache[kDTypeCount][16] = {};
  mutable std::atomic<uint32_t> generation{0};
};

using shape::Place;
using Extent = shape::Extent<int64_t>;

// Computed groups have at most so many dims in one call.
constexpr int64_t kMaxGroup = 3;

// Kernels of `files` run in place of those that are linked where they have the form, until the next call; for tests of
// the same text by another compiler. No kernel may be running.
void use_spaces(ArrayRef<const StrataSpaceFile*> files);

// Whether there are such, and whether they have kernels of `op`.
bool replaced();
bool replaced(const SpaceOp& op);

// A kernel over tensors. Operands as the table lists them, of dtypes as wide as the kernel's for `dtype`. Scalars are
// 16-byte slots in the kernel's types; lists of a group have one each.
struct SpaceArgs {
  const SpaceOp& op;
  DType dtype;
  ArrayRef<const Tensor*> outs, ins;
  ArrayRef<Place> places = {};
  const void* scalars = nullptr;
  ArrayRef<Extent> extents = {};
  int index = -1;  // the input whose values say where a scatter's contributions go
};

// Returns the status word: 2 where an index was out of range.
int32_t space(const SpaceArgs& args);

}  // namespace strata::eager
