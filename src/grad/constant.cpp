#include "grad/constant.h"

#include "grad/function.h"

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

void refuse_gradient(const char* op, const char* argument, const Tensor& t) {
  STRATA_CHECK(!needs_grad(t), "The function '", op, "' is not differentiable with respect to argument '", argument,
               "'. This input cannot have requires_grad True.");
}

}  // namespace strata
