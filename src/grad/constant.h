// What is recorded of operators without a derivative formula.
#pragma once
#include "grad/variable.h"

namespace strata {

// A node whose inputs get zeros: what was written does not depend on them as derivatives see it (comparisons in place).
// `name` must live for ever.
Ref<Node> make_constant_node(const char* name);
// A node that raises when a gradient reaches it: there is a derivative, and the table lacks it. `op` must live for
// ever.
Ref<Node> make_underived_node(const char* op);
inline void add_edges(Node& node, TensorList inputs) {
  for (const Tensor& t : inputs) node.add_edge(t);
}
// Raises when an operand that an operator's derivative leaves out requires grad.
void refuse_gradient(const char* op, const char* argument, const Tensor& t);

}  // namespace strata
