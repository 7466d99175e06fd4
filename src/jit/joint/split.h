// A joint graph, forward and backward in one, as two: what the forward's results and the backward need of it is decided
// by a minimum cut. A value of the forward is either saved, at the price of its bytes, or computed again in the
// backward from what is saved; only what is computed element by element, and views, may be computed again. An argument
// without a gradient, which may be written before the backward runs (a buffer, a queue), is saved only where the
// backward reads it or a view of it, as eager's does: not where it reads what was computed of it.
#pragma once
#include "ir/graph.h"

namespace strata::jit {

struct Halves {
  // forward: parameters are the joint graph's but for the tangents; results are its outputs, then what is saved.
  // backward: parameters are what is saved, then the tangents; results are the gradients.
  ir::Graph forward, backward;
  std::vector<int> written;      // parameters of the forward that it writes
  std::vector<int> saved_param;  // per saved value: the forward's parameter that it is, or -1
};

// `joint`: its parameters are inputs, `tangents` of them last before the captured; its first `forward_nodes` nodes are
// the forward, whose results are its first `outputs` results; `learned`: the forward's
// parameters that gradients are asked for.
Halves split(const ir::Graph& joint, size_t forward_nodes, size_t tangents, size_t outputs, ArrayRef<int> learned);

}  // namespace strata::jit
