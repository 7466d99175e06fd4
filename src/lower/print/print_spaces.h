// The space kernels of a table as one C file for the CPU: every form of each, adapters, and the entries that callers
// look up (StrataSpaceFile of lower/kernel_abi.h).
#pragma once
#include <string>
#include <vector>

#include "lower/desc.h"

namespace strata::lower {

// For those of `dtypes` (a bit each) that a kernel has; kernels that gather elements, by their width, for all of
// theirs.
// `portable`: as C99 alone, for any compiler; else for those that the build takes, with hints.
std::string print_spaces(const std::vector<const KernelDesc*>& kernels, const std::string& symbol, uint32_t dtypes,
                         bool portable = false);

}  // namespace strata::lower
