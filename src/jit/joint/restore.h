// A capture from what a file says of it, which may be anything.
#pragma once
#include "jit/joint/captured.h"

namespace strata::jit {

// Raises Value where a capture cannot have been like this: results and gradients that are not there, a forward that
// hangs on its backward, types that do not fit. The graph is a verified one.
Captured restore(ir::Graph graph, int64_t forward_nodes, int64_t outputs, std::vector<int> tangent_of,
                 std::vector<int> wanted, bool step);

}  // namespace strata::jit
