// A captured graph that is called like the function that it was: compiled when it first runs, differentiable from
// outside where its gradient was captured, too.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "core/generator_scope.h"
#include "jit/compile/plan.h"
#include "jit/joint/captured.h"
#include "jit/joint/split.h"

namespace strata::jit {

class Compiled : public std::enable_shared_from_this<Compiled> {
 public:
  explicit Compiled(Captured captured, PlanOptions options = {});
  // The same function, to be compiled with others.
  std::shared_ptr<Compiled> with(PlanOptions options) const { return std::make_shared<Compiled>(captured_, options); }

  // Raises Value for tensors that do not fit what was captured, Runtime where a gradient is asked for that was not.
  std::vector<Tensor> call(std::vector<Tensor> inputs);

  // The operators of the forward one by one. Below autograd.
  std::vector<Tensor> interpret(TensorList inputs) const { return ir::run(forward_, inputs); }

  const ir::Graph& graph() const { return captured_.graph; }
  const ir::Graph& forward() const { return forward_; }
  // Compiled now if they were not: the forward without a backward, with what the backward needs, and the backward
  // (null where none was captured).
  const Plan& inference();
  const Plan* training();
  const Plan* backward();
  // The least compiled that describes it to people: training and backward where there is a gradient, else inference.
  std::vector<std::pair<std::string, const Plan*>> plans();
  size_t inputs() const { return captured_.inputs(); }
  bool loops() const { return loops_; }  // it may take long, whatever its inputs

 private:
  struct Node;
  // On parameters that fit, with a history for the results.
  std::vector<Tensor> run(const std::vector<Tensor>& params);
  // The gradients with a history of their own. Undefined tangents: of results that have no gradient.
  std::vector<Tensor> differentiable_gradients(const std::vector<Tensor>& params, const std::vector<Tensor>& tangents,
                                               const DrawTape::Drawn& drawn);
  struct Fewer;
  // The backward where some tangents are undefined.
  std::shared_ptr<Fewer> fewer_gradients(const std::vector<char>& given);
  // The gradients by that backward for those tangents. apart: those of which the engine holds a part; theirs are given
  // to it term by term (term_by_term()), but for the last term.
  std::vector<Tensor> gradients_by(const ir::Graph& backward, const Plan* plan, const std::vector<Tensor>& params,
                                   const std::vector<char>& given, const std::vector<char>& apart);
  size_t edge_of(int param) const;  // of a call's node, that leads to a parameter
  void make_halves();
  void make_training();

  const Captured captured_;
  const PlanOptions options_;
  const ir::Graph forward_;
  const bool loops_;
  // Of a result that is a view of a parameter, or of another result: which; else neither. So it is in eager.
  struct ViewOf {
    int param = -1, result = -1;
  };
  std::vector<ViewOf> views_;  // empty where there are none
  void find_views();
  std::vector<Tensor> with_views(std::vector<Tensor> results, const std::vector<Tensor>& params) const;

  std::vector<char> reaches_;  // of its parameters, whether a result's gradient hangs on it
  std::mutex lock_;
  std::unique_ptr<Halves> halves_;  // null where no gradient was captured
  std::string not_again_;           // why_not_again, once there are halves
  bool own_ = false;                // then, whether an autograd.Function or a hook takes part
  std::unique_ptr<Plan> inference_, training_, backward_;
  // For calls, which need no lock then.
  std::atomic<const Plan*> inference_made_{nullptr};
  std::atomic<bool> halves_made_{false}, training_made_{false};
  // By the tangents that are there.
  struct Apart;
  struct Second;
  std::map<std::vector<char>, std::shared_ptr<Fewer>> fewer_;
  std::map<std::vector<char>, std::shared_ptr<Second>> second_;
  std::map<std::vector<char>, std::shared_ptr<Apart>> apart_;  // and then by what is apart
};

}  // namespace strata::jit
