// The text of a graph (print() in ir/graph.h) back to a graph: print(parse(print(g))) is print(g). Blanks and line ends
// are free between words; a comment ends its line and is the span of the node before it.
//
// Constants are read by the types of the operator's schema. Generators and opaque values have no text, and sizes are
// numbers. The tensors of captured parameters are the caller's.
#pragma once
#include <string_view>

#include "ir/graph.h"

namespace strata::ir {

// Raises Value with line, column and what was expected, and for a graph that verify() or verify_types() refuses.
Graph parse(std::string_view text, TensorList captured = {});

}  // namespace strata::ir
