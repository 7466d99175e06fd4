#include "grad/engine/constant.h"

#include "grad/engine/function.h"

namespace strata {

namespace {

class ConstantNode final : public Node {
 public:
  explicit ConstantNode(const char* name) : name_(name) {}
  std::string name() const override { return name_; }
  Grads apply(Grads&& grads) override {
    Grads out(edges.size());
    if (!grads[0].defined()) return out;
    for (size_t i = 0; i < edges.size(); ++i)
      if (needs(i)) out[i] = zero_gradient(edges[i].node->outputs[edges[i].input_nr]);
    return out;
  }

 private:
  const char* name_;
};

class UnderivedNode final : public Node {
 public:
  explicit UnderivedNode(const char* op) : op_(op) {}
  std::string name() const override { return "NotImplemented"; }
  Grads apply(Grads&&) override {
    throw_error(ErrorKind::Runtime, str_cat("derivative for ", op_, " is not implemented"));
  }

 private:
  const char* op_;
};

}  // namespace

Ref<Node> make_constant_node(const char* name) { return Ref<Node>(make_node<ConstantNode>(name).get()); }
Ref<Node> make_underived_node(const char* op) { return Ref<Node>(make_node<UnderivedNode>(op).get()); }

bool needs_grad_lists(TensorLists lists) {
  for (TensorList list : lists)
    if (needs_grad_list(list)) return true;
  return false;
}

void check_inplace_lists(TensorLists written, const char* op) {
  for (TensorList list : written)
    for (const Tensor& t : list) check_inplace(t, op);
}

void add_edges(Node& node, TensorLists inputs) {
  for (TensorList list : inputs)
    for (const Tensor& t : list) node.add_edge(t);
}

RecordedWrites::RecordedWrites(Maker make, const char* text, TensorLists written, TensorLists read) {
  for (TensorList list : written)
    for (const Tensor& t : list) {
      Ref<Node> node = make(text);
      if (t.defined()) add_written_edge(*node, t);
      add_edges(*node, read);
      writes_.emplace_back(t, std::move(node));
    }
}

void RecordedWrites::finish() const {
  for (const auto& [t, node] : writes_)
    if (is_differentiable(t.dtype())) rebase_history(t, node);
}

void refuse_gradient(const char* op, const char* argument, const Tensor& t) {
  STRATA_CHECK(!needs_grad(t), "The function '", op, "' is not differentiable with respect to argument '", argument,
               "'. This input cannot have requires_grad True.");
}

}  // namespace strata
