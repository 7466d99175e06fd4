// The text of a table kernel in a dialect, for people and for tools.
#pragma once
#include <string>
#include <vector>

#include "core/dtype.h"
#include "lower/print/print_nest.h"

namespace strata::lower {

struct KernelSource {
  std::string text;    // a whole file
  std::string symbol;  // the function in it
  std::vector<NestParameter> parameters;
};

// `name`: an operator ("aten::add.Tensor", "add.Tensor") or a kernel of the table ("softmax_rows"). What only moves
// elements has a kernel for each width: that of dtype's is meant. Raises Value where there is no printed kernel of that
// name or dtype, and says what there is.
KernelSource kernel_source(const std::string& name, DType dtype, const std::string& dialect);

// Of several: one file with a function for each; the symbol and the parameters are the first's. One that has no kernel
// for dtype is in the first dtype that it has.
KernelSource kernel_sources(const std::vector<std::string>& names, DType dtype, const std::string& dialect);

// All space kernels of a family of the table, as one C99 file that defines `const StrataSpaceFile portable_<family>`
// (kernel_abi.h); for the dtypes of the mask, a bit each. Empty where the family has none.
std::string space_source(const std::string& family, uint32_t dtypes);

}  // namespace strata::lower
