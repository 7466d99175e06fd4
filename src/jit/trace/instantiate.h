// From a graph whose composite operators are whole (a Recording with `whole`) to what it is for tensors of some shapes:
// each composite falls apart as it does for these, and an argument that is an expression of sizes becomes a number.
#pragma once
#include "ir/graph.h"

namespace strata {

// params: the graph's inputs, or tensors without memory like them; the captured tensors are its own.
ir::Graph instantiate(const ir::Graph& graph, TensorList params);

// Tensors without memory, of the types of the inputs.
std::vector<Tensor> inputs_like(const ir::Graph& graph);

}  // namespace strata
