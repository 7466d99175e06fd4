// Finds generated kernels: by name and dtype, in the best instruction set that the machine has (or STRATA_CPU names).
#pragma once
#include "core/dtype.h"
#include "lower/kernel_abi.h"
#include "run/isa.h"

namespace strata::eager {

// Null when the kernel is not printed for that dtype.
const StrataKernelEntry* find_kernel(const char* name, DType dtype);
using run::cpu_isa;
using run::isa_generation;
using run::set_cpu_isa;

// Reads and clears what a kernel's status word said, as an ordinary error.
void raise_status(int32_t status, const char* op);

}  // namespace strata::eager
