// Gradients for programs in C++: what Tensor's methods of that name do, and modes for a scope.
#pragma once
#include "dispatch/tls.h"
#include "grad/engine/engine.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops.h"

namespace strata {

// While it lives, operators of this thread record nothing for gradients.
struct NoGradGuard : GradModeGuard {
  NoGradGuard() : GradModeGuard(false) {}
};

// The gradient of a tensor is added to .grad() of every leaf that it was made from. `gradient`: of its own shape; may
// be left out for one element.
inline void backward(const Tensor& of, const Tensor& gradient = {}, bool retain_graph = false,
                     bool create_graph = false) {
  BackwardOptions options;
  options.keep_graph = retain_graph || create_graph;
  options.create_graph = create_graph;
  backward(TensorList(of), gradient.defined() ? TensorList(gradient) : TensorList(), options);
}

// Gradients of `outputs` by `inputs`, without touching .grad(). An input that no output depends on raises, or with
// allow_unused gives an undefined tensor.
inline std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                                bool retain_graph = false, bool create_graph = false, bool allow_unused = false) {
  BackwardOptions options;
  options.keep_graph = retain_graph || create_graph;
  options.create_graph = create_graph;
  options.accumulate = false;
  return gradients(outputs, inputs, grad_outputs, options, allow_unused);
}

inline void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  strata::backward(*this, gradient, retain_graph, create_graph);
}
inline Tensor Tensor::grad() const { return grad_of(*this); }
inline const Tensor& Tensor::requires_grad_(bool on) const {
  set_requires_grad(*this, on);
  return *this;
}

}  // namespace strata
