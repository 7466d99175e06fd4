// What a capture gives: forward and backward in one graph, or the forward alone.
#pragma once
#include "core/dtype.h"
#include "dispatch/autocast.h"
#include "ir/graph.h"

namespace strata::jit {

struct Captured {
  ir::Graph graph;
  size_t forward_nodes = 0, outputs = 0;
  std::vector<int> tangent_of;    // per tangent, the last inputs: the output whose gradient it is
  std::vector<int> wanted;        // the forward's parameters that required a gradient: theirs come after the outputs
  bool step = false;              // it computed gradients itself: results need none
  DType dtype = default_dtype();  // the default one, that new tensors had
  AutocastState autocast = autocast_state(0);

  size_t inputs() const { return graph.inputs() - tangent_of.size(); }
  ir::Graph forward() const;  // alone: nodes of the backward and tangents left out
  // The graph's parameters: inputs, tangents, captured tensors.
  std::vector<Tensor> joint_params(TensorList forward_params, TensorList tangents) const;
};

// Raises NotImplemented where the joint graph cannot be run again above autograd, for the derivative of its gradients:
// its operators' own derivatives would be others than the program's, or running it again does more than compute.
void check_differentiable(const Captured& captured);

// The gradients as a function of the joint graph's parameters, forward and backward: captured by running the joint
// graph on these tensors above autograd. Its outputs are those gradients that are there.
Captured differentiate(const Captured& captured, TensorList joint_params);

}  // namespace strata::jit
