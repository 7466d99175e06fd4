// Dead code: nodes whose results nobody reads go, unless they have an effect (ir/effect.h).
#pragma once
#include "ir/graph.h"

namespace strata::ir {

std::string remove_dead(Graph& graph);

}  // namespace strata::ir
