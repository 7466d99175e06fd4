// A captured graph that is called like the function that it was: compiled when it first runs, differentiable from
// outside where its gradient was captured, too.
#pragma once
#include <memory>
#include <mutex>

#include "core/dtype.h"
#include "dispatch/autocast.h"
#include "jit/compile/plan.h"

namespace strata::jit {

// What a capture gives: forward and backward in one graph, or the forward alone.
struct Captured {
  ir::Graph graph;
  size_t forward_nodes = 0, outputs = 0;
  std::vector<int> tangent_of;    // per tangent, the last inputs: the output whose gradient it is
  std::vector<int> wanted;        // per gradient, the results after the outputs: the forward's parameter that it is of
  bool step = false;              // it computed gradients itself: results need none
  DType dtype = default_dtype();  // the default one, that new tensors had
  AutocastState autocast = autocast_state(0);
};

class Compiled : public std::enable_shared_from_this<Compiled> {
 public:
  explicit Compiled(Captured captured);

  // Raises Value for tensors that do not fit what was captured, Runtime where a gradient is asked for that was not.
  std::vector<Tensor> call(TensorList inputs);

  // The operators of the forward one by one. Below autograd.
  std::vector<Tensor> interpret(TensorList inputs) const { return ir::run(forward_, inputs); }

  const ir::Graph& graph() const { return captured_.graph; }
  // Compiled now if they were not: the forward without a backward, with what the backward needs, and the backward
  // (null where none was captured).
  const Plan& inference();
  const Plan* training();
  const Plan* backward();
  // The least compiled that describes it to people: training and backward where there is a gradient, else inference.
  std::vector<std::pair<std::string, const Plan*>> plans();
  size_t inputs() const { return captured_.graph.inputs() - captured_.tangent_of.size(); }

 private:
  struct Node;
  std::vector<Tensor> run_backward(const std::vector<Tensor>& saved, const std::vector<Tensor>& grads);
  void make_training();

  Captured captured_;
  ir::Graph forward_;
  std::vector<int> saved_param_;
  std::mutex lock_;
  std::unique_ptr<Plan> inference_, training_, backward_;
};

}  // namespace strata::jit
