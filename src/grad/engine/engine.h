// The backward engine: runs the nodes reachable from some roots in an order in which every node has all its gradients,
// without recursion. Safe from several threads at once: all state of a run is its own.
#pragma once
#include "grad/engine/node.h"

namespace strata {

struct BackwardOptions {
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = true;   // into leaves; false: only the gradients of `inputs` are wanted
  bool input_hooks = true;  // hooks of `inputs` change what is returned
};

// Gradients `grads` of `roots` flow back. With `inputs`, their gradients are returned (undefined where there is no
// path) and, when not accumulating, no leaf changes.
std::vector<Tensor> run_backward(const std::vector<Edge>& roots, std::vector<Tensor> grads,
                                 const std::vector<Edge>& inputs, const BackwardOptions& options);

// The edge whose gradient is asked for: of a view that requires one by its base alone, a node that nothing reaches.
Edge wanted_edge(const Tensor& t);
// Tensor.backward and autograd.grad over tensors: checks, and ones for the gradients that are not given.
void backward(TensorList tensors, TensorList grads, const BackwardOptions& options, TensorList inputs = {});
std::vector<Tensor> gradients(TensorList outputs, TensorList inputs, TensorList grads, const BackwardOptions& options,
                              bool allow_unused);

// Runs `callback` once when the current backward run ends. Raises outside of one.
void queue_backward_callback(std::function<void()> callback);
// The node that runs now on this thread; null outside of a backward run.
Node* current_node();
// Inside of its apply: whether what its edge `index` leads to has a gradient by now, to which the node's would be
// added; and one of several that the node has for it, before the last one, which apply returns.
bool gradient_waits(size_t index);
void give_gradient(size_t index, Tensor grad);

// An observer of node executions, for the profiler.
struct NodeObserver {
  void (*begin)(Node& node);
  void (*end)(Node& node);
};
extern std::atomic<const NodeObserver*> node_observer;

}  // namespace strata
