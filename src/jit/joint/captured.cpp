#include "jit/joint/captured.h"

#include <algorithm>

#include "dispatch/info.h"
#include "grad/engine.h"
#include "grad/variable.h"
#include "jit/trace/recorder.h"

namespace strata::jit {

namespace {

class Rerecording final : public ir::Interpreter {
 public:
  Rerecording(const ir::Graph& graph, Recording& recording) : Interpreter(graph), recording_(recording) {}

 private:
  void call(const ir::Node& node, Stack& stack) override {
    recording_.stand_for(&node);
    Interpreter::call(node, stack);
    recording_.stand_for(nullptr);
  }
  Recording& recording_;
};

}  // namespace

void check_differentiable(const Captured& c) {
  for (size_t i = 0; i < c.graph.body.nodes.size(); ++i) {
    const ir::Node& n = c.graph.body.nodes[i];
    if (n.kind != ir::Node::Call) continue;
    STRATA_CHECK_NOT_IMPLEMENTED(n.gradient != ir::Node::Own, "graph: a second derivative (create_graph=True) through ",
                                 n.op->name, ", which an autograd.Function calls (", n.span,
                                 "): the graph knows its first derivative alone; take it of the function itself");
    STRATA_CHECK_NOT_IMPLEMENTED(info(*n.op)->acts.find("draws") == std::string::npos,
                                 "graph: a second derivative (create_graph=True) through ", n.op->name, " (", n.span,
                                 "): it would draw other random numbers; take it of the function itself");
  }
}

ir::Graph Captured::forward() const {
  ir::Graph alone = graph;
  alone.body.nodes.resize(std::min(forward_nodes, alone.body.nodes.size()));
  alone.body.results.resize(outputs);
  auto& params = alone.body.params;
  const auto first = params.begin() + int64_t(inputs());
  params.erase(first, first + int64_t(tangent_of.size()));
  return alone;
}

std::vector<Tensor> Captured::joint_params(TensorList forward_params, TensorList tangents) const {
  std::vector<Tensor> all(forward_params.begin(), forward_params.begin() + inputs());
  all.insert(all.end(), tangents.begin(), tangents.end());
  all.insert(all.end(), forward_params.begin() + inputs(), forward_params.end());
  return all;
}

Captured differentiate(const Captured& c, TensorList joint_params) {
  const size_t first_tangent = c.inputs(), tangents = c.tangent_of.size();
  std::vector<char> learned(joint_params.size());
  for (int p : c.wanted) learned[size_t(p) < first_tangent ? size_t(p) : size_t(p) + tangents] = true;
  for (size_t t = 0; t < tangents; ++t) learned[first_tangent + t] = true;
  const AutocastGuard plain(DType::BF16, false);
  const GradModeGuard on(true);
  std::vector<Tensor> leaves, wanted;
  Captured made;
  for (size_t i = 0; i < joint_params.size(); ++i) {
    const Tensor& t = joint_params[i];
    leaves.push_back(t.alias(t.sizes(), t.strides(), t.storage_offset()));
    if (!learned[i]) continue;
    set_requires_grad(leaves.back(), true);
    made.wanted.push_back(int(i));
    wanted.push_back(leaves.back());
  }
  Recording recording(leaves);
  const std::vector<Tensor> values = Rerecording(c.graph, recording).run(leaves);
  std::vector<Tensor> results, ends, ones;
  for (size_t k = c.outputs; k < values.size(); ++k)
    if (values[k].defined()) results.push_back(values[k]);
  made.outputs = results.size();
  made.forward_nodes = recording.graph().body.nodes.size();
  for (size_t k = 0; k < made.outputs; ++k) {
    if (!needs_grad(results[k])) continue;
    made.tangent_of.push_back(int(k));
    ends.push_back(results[k]);
    ones.push_back(recording.tangent(results[k], str_cat("gradient of gradient ", k)));
  }
  if (!ends.empty()) {
    const std::vector<Tensor> found = gradients(ends, wanted, ones, {.accumulate = false}, true);
    results.insert(results.end(), found.begin(), found.end());
  }
  made.graph = recording.finish(results);
  made.autocast = {};
  return made;
}

}  // namespace strata::jit
