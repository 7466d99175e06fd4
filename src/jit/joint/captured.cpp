#include "jit/joint/captured.h"

#include <algorithm>

#include "dispatch/info.h"
#include "grad/engine/engine.h"
#include "grad/engine/variable.h"
#include "ir/effect.h"
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

// What a recording differentiates: leaves in the place of tensors.
struct Leaves {
  std::vector<Tensor> all, learned;
  std::vector<int> places;  // of the learned

  void add(const Tensor& t, bool learns) {
    all.push_back(t.alias(t.sizes(), t.strides(), t.storage_offset()));
    if (!learns) return;
    set_requires_grad(all.back(), true);
    places.push_back(int(all.size()) - 1);
    learned.push_back(all.back());
  }
};

// Ends a recording of `results` with their gradients.
Captured with_gradients(Recording& recording, const Leaves& leaves, std::vector<Tensor> results) {
  Captured made;
  made.wanted = leaves.places;
  made.autocast = {};
  made.forward_nodes = recording.graph().body.nodes.size();
  made.outputs = results.size();
  std::vector<Tensor> roots, ones;
  for (size_t k = 0; k < made.outputs; ++k) {
    if (!needs_grad(results[k])) continue;
    made.tangent_of.push_back(int(k));
    roots.push_back(results[k]);
    ones.push_back(recording.tangent(results[k], str_cat("gradient of result ", k)));
  }
  if (!roots.empty()) {
    const std::vector<Tensor> found = gradients(roots, leaves.learned, ones, {.accumulate = false}, true);
    results.insert(results.end(), found.begin(), found.end());
  }
  made.graph = recording.finish(results);
  return made;
}

std::vector<char> marks(const Captured& c, size_t params) {
  std::vector<char> learned(params);
  for (int p : c.wanted) learned[size_t(p)] = true;
  return learned;
}

// Of results of the forward, for the tangents that are there.
std::vector<Tensor> differentiable(const Captured& c, const std::vector<Tensor>& results, TensorList wanted,
                                   TensorList tangents) {
  std::vector<Tensor> roots, given;
  for (size_t t = 0; t < tangents.size(); ++t)
    if (tangents[t].defined()) {
      roots.push_back(results[size_t(c.tangent_of[t])]);
      given.push_back(tangents[t]);
    }
  return gradients(roots, wanted, given, {.keep_graph = true, .create_graph = true, .accumulate = false}, true);
}

bool draws(const ir::Node& n) {
  const std::optional<OpInfo> known = info(*n.op);  // nothing is known of a program's own
  return known && known->acts.find("draws") != std::string::npos;
}

}  // namespace

std::string why_not_again(const Captured& c) {
  for (const ir::Node& n : c.graph.body.nodes) {
    if (!n.blocks.empty())
      return str_cat("through a function of cond or while_loop (", n.span,
                     "): the graph knows its first derivative alone");
    if (n.kind != ir::Node::Call) continue;
    if (n.gradient == ir::Node::Own)
      return str_cat("through ", n.op->name, ", which an autograd.Function or a hook calls (", n.span,
                     "): the graph knows its first derivative alone");
    if (!draws(n)) continue;
    bool others = false;
    for (const ir::Arg& a : n.args)
      others |= a.kind == ir::Arg::Constant && a.constant.is<Generator>() && a.constant.get<Generator>().defined();
    for (ir::Id v : n.results) others |= v != ir::kNone && !c.graph.values[size_t(v)].type.device.is_cpu();
    if (others)
      return str_cat("through ", n.op->name, " (", n.span,
                     "), which draws from a generator that it was given, or a device's: it would draw other numbers");
  }
  return "";
}

bool draws(const ir::Graph& graph) {
  return std::ranges::any_of(graph.body.nodes, [](const ir::Node& n) { return n.kind == ir::Node::Call && draws(n); });
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

std::vector<char> reached(const ir::Graph& backward, const std::vector<char>& given) {
  const ir::Memory memory(backward);
  std::vector<char> value(backward.values.size()), written(backward.values.size());  // written: by memory
  for (size_t p = 0; p < given.size(); ++p) value[size_t(backward.body.params[p])] = given[p];
  auto hangs = [&](ir::Id v) { return value[size_t(v)] || written[size_t(memory.of(v))]; };
  for (const ir::Node& n : backward.body.nodes) {
    bool any = false;
    ir::each_use(n, [&](ir::Id v) { any |= hangs(v); });
    if (!any) continue;
    for (ir::Id v : n.results)
      if (v != ir::kNone) value[size_t(v)] = true;
    ir::each_written(n, [&](ir::Id v, const ir::Node&) { written[size_t(memory.of(v))] = true; });
  }
  std::vector<char> results;
  for (ir::Id v : backward.body.results) results.push_back(v != ir::kNone && hangs(v));
  return results;
}

Derivative differentiate(const Captured& c, TensorList forward_params, TensorList tangents) {
  const AutocastGuard plain(DType::BF16, false);
  const GradModeGuard on(true);
  const std::vector<char> learned = marks(c, forward_params.size());
  Leaves leaves;
  for (size_t i = 0; i < forward_params.size(); ++i) leaves.add(forward_params[i], learned[i]);
  const std::vector<Tensor> wanted = leaves.learned;
  std::vector<Tensor> given;
  for (const Tensor& t : tangents) {
    if (t.defined()) leaves.add(t, true);
    given.push_back(t.defined() ? leaves.all.back() : t);
  }
  Recording recording(leaves.all);
  const std::vector<Tensor> params(leaves.all.begin(), leaves.all.begin() + int64_t(forward_params.size()));
  const std::vector<Tensor> found = differentiable(c, Rerecording(c.forward(), recording).run(params), wanted, given);
  Derivative made;
  std::vector<Tensor> results;
  for (const Tensor& g : found) {
    made.there.push_back(g.defined());
    if (g.defined()) results.push_back(g);
  }
  made.captured = with_gradients(recording, leaves, std::move(results));
  return made;
}

std::vector<Tensor> differentiable_gradients(const Captured& c, TensorList forward_params, TensorList tangents) {
  const AutocastGuard plain(DType::BF16, false);
  std::vector<Tensor> wanted;
  for (int p : c.wanted) wanted.push_back(forward_params[size_t(p)]);
  return differentiable(c, ir::Interpreter(c.forward()).run(forward_params), wanted, tangents);
}

}  // namespace strata::jit
