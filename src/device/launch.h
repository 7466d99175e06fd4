// Launches on a device: what run/ would do on the CPU, by kernels that are printed in the device's dialect. Operands
// are tensors of the device; numbers of 0 dims may lie on the CPU.
#pragma once
#include "device/unit.h"
#include "run/launch.h"
#include "run/pointwise.h"
#include "run/random.h"
#include "run/rows.h"

namespace strata::device {

void pointwise(Unit& unit, const eager::PointwiseOp& op, DType dtype, ArrayRef<const Tensor*> outs,
               ArrayRef<const Tensor*> in, ArrayRef<Scalar> scalars);
void rows(Unit& unit, const eager::RowsOp& op, DType dtype, ArrayRef<const Tensor*> outs, ArrayRef<const Tensor*> in,
          ArrayRef<Scalar> scalars, const DimVec& dims);
// False where the table has no kernel of it that can be printed: C++ runs it on the CPU.
bool can_run(const eager::SpaceOp& op);
void space(Unit& unit, const eager::SpaceCall& call);
// By the words from `state` on.
void draw(Unit& unit, const eager::DrawOp& op, DType dtype, const Tensor& out, ArrayRef<const Tensor*> operands,
          ArrayRef<eager::DrawNumber> numbers, PhiloxState state);
// Broadcast and converted.
void copy(Unit& unit, const Tensor& to, const Tensor& from);
void fill(Unit& unit, const Tensor& to, const Scalar& value);

// `t` on another device or on the CPU, with its strides where it has no gaps. From the CPU or to it.
// `later`: without waiting where the host's memory is pinned, which a result on the CPU then is.
Tensor moved(const Tensor& t, Device to, bool later = false);

// Nests of copies, fills and conversions of a dtype, over one dim and over two.
std::vector<const KernelNest*> copy_nests(DType dtype);
// The nest of a table's kernel over so many dims of rows (0: none) and of elements, whose rows so many items share; and
// all forms of a space kernel.
const KernelNest& block_nest(const lower::KernelDesc& desc, DType dtype, int kept, size_t elements, int group = 0);
// How many items share a row of so many elements; 0: each has one alone. Small groups wait less for each other, where
// there are rows enough to keep the device busy.
int group_for(const Unit& unit, int64_t rows, int64_t elements);
// The lesser of the two groups that share rows on a device; 0: it has none.
int small_group(const Plugin& plugin);
std::vector<const KernelNest*> space_nests(const lower::KernelDesc& desc, DType dtype);

}  // namespace strata::device
