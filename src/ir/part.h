// A part of a graph: some of its values given from outside, and no more run than what is asked for takes.
#pragma once
#include <utility>

#include "base/array_ref.h"
#include "ir/graph.h"

namespace strata::ir {

using Feed = std::pair<Id, Tensor>;

// The graph that a run of the part is. Its inputs are the graph's parameters, then what is fed; its results those of
// `fetch`, as they were when their nodes had run, which later writes do not change; or, where there is none, the
// graph's own, with everything that has an effect.
//   Left out are nodes that nothing of this needs: not what computes a needed value, writes memory that one may lie in,
// or draws random numbers before one that is drawn.
//   `needed` tells which of the graph's parameters it reads. Fed tensors and parameters that are fed are not written:
// copies of them are.
struct Part {
  Graph graph;
  std::vector<char> needed;
};
Part part_of(const Graph& graph, ArrayRef<Id> fed, ArrayRef<Id> fetch, bool whole);

// Runs it, below autograd. `params` are the graph's, undefined where the caller has none. Raises Value for tensors that
// do not fit, for values that are defined in no place that can be fed or fetched, and where one that is needed is
// missing.
std::vector<Tensor> run_part(const Graph& graph, TensorList params, ArrayRef<Feed> feed, ArrayRef<Id> fetch,
                             bool whole);

}  // namespace strata::ir
