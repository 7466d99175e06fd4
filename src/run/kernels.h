// Finds generated kernels: by name and dtype, in the best instruction set that the machine has (or STRATA_CPU names).
#pragma once
#include "base/error.h"
#include "core/dtype.h"
#include "lower/kernel_abi.h"
#include "run/isa.h"

namespace strata::eager {

// Null when there is none for that dtype. Float16 has the kernels of float32, between conversions by the caller: the
// entry's dtype is what the kernel reads and, where it is its output's, writes.
const StrataKernelEntry* find_kernel(const char* name, DType dtype);
// What compiles kernels that programs have added: find_kernel() asks it for those that are not linked.
void set_kernel_source(const StrataKernelEntry* (*source)(const char* name, DType dtype));
// The dtype of a result of an operator that computes on dtype `t`.
inline DType result_dtype(const StrataKernelEntry& e, size_t output, DType t) {
  return e.output_dtype[output] == e.dtype ? t : static_cast<DType>(e.output_dtype[output]);
}

// Reads and clears what a kernel's status word said, as an ordinary error.
void raise_status(int32_t status, const char* op, ErrorKind outside = ErrorKind::Index);

}  // namespace strata::eager
