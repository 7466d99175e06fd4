// The table's kernels as fusion sees them.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "base/array_ref.h"
#include "lower/desc.h"
#include "lower/ir/ir.h"

namespace strata::jit {

// Its descriptions: one for each set of dtypes. Empty where the table has no kernel of that name.
ArrayRef<const lower::KernelDesc*> descriptions(std::string_view kernel);

// The expression of a kernel as a graph.
struct Piece {
  lower::Graph graph;
  std::vector<std::array<int, 2>> outputs;
  std::vector<int> unrounded;  // Builder::unrounded
  // Whether its result may jump where an operand changes by little: it compares two values, rounds to an integer, or is
  // no float.
  bool jumps = false;
  lower::Kernel kernel;  // operands and scalars
};

// Parsed once in the process. Null where the table has no such expression, or one that cannot be fused. `elsewhere`:
// for printers that have no instructions for half types and make random words themselves: the kernel's last two scalars
// are their seed and offset then, and nodes of Op::Index the numbers of words.
const Piece* piece(std::string_view kernel, DType dtype, bool elsewhere = false);

// Of each node of a graph whether some of `outputs` needs it.
std::vector<char> needed(const lower::Graph& g, const std::vector<std::array<int, 2>>& outputs);

}  // namespace strata::jit
