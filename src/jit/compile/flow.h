// Control flow in a plan: the blocks of an `if` or a `loop` are plans of their own, which one launch of the outer plan
// runs by the values of its condition.
#pragma once
#include <memory>
#include <vector>

#include "ir/graph.h"

namespace strata::jit {

class Plan;

struct Flow {
  std::vector<ir::Id> reads;      // the launch's operands: the condition, what a loop carries, what blocks read
  std::vector<ir::Graph> graphs;  // of blocks: what is carried, then what they read, as parameters
  std::vector<std::shared_ptr<const Plan>> plans;
  size_t carried = 0;
  bool draws = false, writes = false;  // it may draw random numbers; it may write what it reads
  bool loops = false;

  // Raises NotImplemented where a block uses numbers that are no tensors.
  Flow(const ir::Graph& graph, const ir::Node& node);
  // operands: as `reads` says.
  std::vector<Tensor> run(TensorList operands) const;
};

}  // namespace strata::jit
