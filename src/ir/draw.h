// A picture of a graph as SVG text: a box for each node and parameter and one for what is returned, in layers from top
// to bottom, a line for each value from what makes it to what reads it. Blocks are drawn among the nodes around them.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

std::string draw(const Graph& graph);

}  // namespace strata::ir
