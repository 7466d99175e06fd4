// The printed file of a fused kernel. A function that is prepared for another size has kernels that were printed
// before.
#pragma once
#include <string>

#include "lower/print/print_c.h"

namespace strata::jit {

// lower::print_file of one kernel, remembered by all that the kernel is.
std::string text_of(const std::string& family, const lower::Kernel& kernel, lower::Isa isa);

}  // namespace strata::jit
