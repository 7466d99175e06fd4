// What is recorded of operators without a derivative formula.
#pragma once
#include "grad/engine/variable.h"

namespace strata {

// A node whose inputs get zeros: what was written does not depend on them as derivatives see it (comparisons in place).
// `name` must live for ever.
Ref<Node> make_constant_node(const char* name);
// A node that raises when a gradient reaches it: there is a derivative, and the table lacks it. `op` must live for
// ever.
Ref<Node> make_underived_node(const char* op);

// Operands of such an operator: a tensor is a list of one.
using TensorLists = ArrayRef<TensorList>;
bool needs_grad_lists(TensorLists lists);
void check_inplace_lists(TensorLists written, const char* op);
// A node for each tensor that an operator writes, made before it runs: its inputs are that tensor and all that is read.
class RecordedWrites {
 public:
  using Maker = Ref<Node> (*)(const char* text);
  RecordedWrites(Maker make, const char* text, TensorLists written, TensorLists read);
  void finish() const;  // after it ran: the written tensors get their nodes

 private:
  std::vector<std::pair<Tensor, Ref<Node>>> writes_;
};
void add_edges(Node& node, TensorLists inputs);
// Raises when an operand that an operator's derivative leaves out requires grad.
void refuse_gradient(const char* op, const char* argument, const Tensor& t);

}  // namespace strata
