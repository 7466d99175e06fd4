// Expressions of sizes, as texts: "%3.size(0) * 2 + 1", "(%0.size(1) + 7) // 8", "%0.size(0) != 4". What stands in a
// graph in the place of an int that hangs on the sizes of values.
#pragma once
#include <functional>
#include <string_view>

#include "ir/graph.h"

namespace strata::ir {

// Gives the size of a value along a dim, or raises.
using SizeOf = std::function<int64_t(Id value, int64_t dim)>;

// The number that the expression at the beginning of `text` is; a comparison is 1 or 0. `used`: letters of it, without
// the space behind. Raises Value for what is no expression, Runtime where a number does not fit or is divided by zero.
int64_t evaluate_sizes(std::string_view text, const SizeOf& size, size_t* used = nullptr);

// The argument with numbers in the place of its expressions.
IValue evaluated(const Arg& arg, const SizeOf& size);

}  // namespace strata::ir
