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
};

// Why the forward cannot be run again above autograd, for other gradients than those that were captured, or nothing:
// its operators' own derivatives would be others than the program's, or running it again does more than compute.
std::string why_not_again(const Captured& captured);

// Whether it draws random numbers outside of blocks, as far as the table says.
bool draws(const ir::Graph& graph);

// Which results of a backward may hang on the parameters that are `given`, by parameter.
std::vector<char> reached(const ir::Graph& backward, const std::vector<char>& given);

// The gradients as a function of the forward's parameters and the tangents that are there (the others are undefined),
// recorded as eager computes them where they are to be differentiated in their turn.
struct Derivative {
  Captured captured;
  std::vector<char> there;  // of the wanted gradients: those that are its outputs; the others are None
};
Derivative differentiate(const Captured& captured, TensorList forward_params, TensorList tangents);
// The same now, without a graph of it.
std::vector<Tensor> differentiable_gradients(const Captured& captured, TensorList forward_params, TensorList tangents);

}  // namespace strata::jit
