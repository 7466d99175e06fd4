// The nodes that a nest's stores need, reductions' values among them, and no others: a text may name more than it uses.
// Before: stores name nodes of `graph`. After: nest.nodes and nest.reductions hold what is needed, in the same order.
#pragma once
#include "lower/ir/nest.h"

namespace strata::lower {

void keep_live(const Graph& graph, Nest& nest);

}  // namespace strata::lower
