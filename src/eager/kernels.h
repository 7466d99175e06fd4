// Finds generated kernels: by name and dtype, in the best instruction set that the machine has (or STRATA_CPU names).
#pragma once
#include "core/dtype.h"
#include "lower/kernel_abi.h"

namespace strata::eager {

// Null when the kernel is not printed for that dtype.
const StrataKernelEntry* find_kernel(const char* name, DType dtype);
// "base", "v3" or "v4": what runs here. Settable once per process by STRATA_CPU, and by tests through set_cpu_isa.
const char* cpu_isa();
void set_cpu_isa(const char* isa);  // raises when the machine lacks it; later calls use it
uint32_t isa_generation();          // changes with set_cpu_isa, so that cached entries are looked up again

// Reads and clears what a kernel's status word said, as an ordinary error.
void raise_status(int32_t status, const char* op);

}  // namespace strata::eager
