// From a graph whose composite operators are whole (a Recording with `whole`) to what it is for tensors of some shapes:
// each composite falls apart as it does for these, and an argument that is an expression of sizes becomes a number.
#pragma once
#include "ir/graph.h"

namespace strata {

// params: the graph's inputs, or tensors without memory like them; the captured tensors are its own. Raises Value for
// tensors that are no such inputs, and where the program is none for their sizes.
ir::Graph instantiate(const ir::Graph& graph, TensorList params);

// Tensors without memory, of the types of the inputs.
std::vector<Tensor> inputs_like(const ir::Graph& graph);

// Whether it is a program for more than the sizes of its types.
bool varies(const ir::Graph& graph);

}  // namespace strata
