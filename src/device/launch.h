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
void draw(Unit& unit, const eager::DrawOp& op, DType dtype, const Tensor& out, ArrayRef<const Tensor*> operands,
          ArrayRef<eager::DrawNumber> numbers);
// Broadcast and converted.
void copy(Unit& unit, const Tensor& to, const Tensor& from);
void fill(Unit& unit, const Tensor& to, const Scalar& value);

// `t` on another device or on the CPU, with its strides where it has no gaps. From the CPU or to it.
Tensor moved(const Tensor& t, Device to);

}  // namespace strata::device
