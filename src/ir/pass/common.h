// Common subexpressions: of two calls with the same operator, operands and constants the second goes, where
//   - the operator gives the same bits each time (ir/effect.h: repeats), so never one that may draw random numbers;
//   - nothing between them may write memory of an operand;
//   - nobody can tell one result from two: neither result's memory is written, and not both are returned. Views may
//     share what is written, since they share it anyway, as long as no header over it may change.
// Each block is looked at by itself.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

std::string join_common(Graph& graph);

}  // namespace strata::ir
