// Constants: calls over numbers alone that give one number are computed once, and become aten::full of it (a tensor of
// its own in each run); numbers that nodes hold become arguments; a branch of a known condition is taken, and a loop
// without turns is what it was given. Only operators that repeat (ir/effect.h) are run, and not where they raise.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

std::string fold_constants(Graph& graph);

}  // namespace strata::ir
