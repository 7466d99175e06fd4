#include "jit/trace/instantiate.h"

#include <algorithm>

#include "ir/rewrite.h"
#include "jit/trace/recorder.h"

namespace strata {

namespace {

bool as_exported(const Tensor& t, const ir::Type& type) {
  if (!t.defined() || t.dtype() != type.dtype || t.device() != type.device || size_t(t.dim()) != type.sizes.size())
    return false;
  for (size_t d = 0; d < type.sizes.size(); ++d)
    if (!(d < 64 && (type.varies >> d & 1)) && t.sizes()[d] != type.sizes[d].hint()) return false;
  return true;
}

class Again final : public ir::Interpreter {
 public:
  Again(const ir::Graph& graph, Recording& recording) : Interpreter(graph), graph_(graph), recording_(recording) {}

 private:
  // A size that Python was told as a number when the program was exported is that number.
  void check_result(const ir::Node& node, ir::Id v) override {
    const ir::Type& type = graph_.values[size_t(v)].type;
    const Tensor& t = value(v).get<Tensor>();
    STRATA_CHECK_VALUE(as_exported(t, type), "exported program: ", node.op->name, node.span.empty() ? "" : " (",
                       node.span, node.span.empty() ? "" : ")", ": gives ", ir::to_string(ir::type_of(t)),
                       " for the sizes of this call, and gave ", ir::to_string(type), " when it was exported");
  }
  void call(const ir::Node& node, Stack& stack) override {
    recording_.stand_for(&node);
    Interpreter::call(node, stack);
    recording_.stand_for(nullptr);
  }
  ir::Block recorded(const ir::Block& b) {
    std::vector<Tensor> results;
    for (const IValue& v : block(b)) results.push_back(v.get<Tensor>());
    return recording_.end_block(results);
  }
  void finish(const ir::Node& n, const std::vector<Tensor>& results) {
    give(n.results, std::vector<IValue>(results.begin(), results.end()));
  }
  void branch(const ir::Node& n) override {
    recording_.begin_block();
    ir::Block yes = recorded(n.blocks[0]);
    recording_.begin_block();
    ir::Block no = recorded(n.blocks[1]);
    const ir::Node* before = recording_.stand_for(&n);
    finish(n, recording_.branch(read(n.args[0].values[0]).get<Tensor>(), std::move(yes), std::move(no), {}));
    recording_.stand_for(before);
  }
  void loop(const ir::Node& n) override {
    std::vector<Tensor> carried;
    for (size_t i = 1; i < n.args.size(); ++i) {
      STRATA_CHECK_NOT_IMPLEMENTED(n.args[i].kind == ir::Arg::One && read(n.args[i].values[0]).is_tensor(),
                                   "graph: a loop that carries numbers is interpreted alone");
      carried.push_back(read(n.args[i].values[0]).get<Tensor>());
    }
    const Tensor going = carried[0];
    carried.erase(carried.begin());
    recording_.begin_block();
    std::vector<Tensor> params = recording_.block_params(carried);
    std::vector<IValue> given{IValue(int64_t(0))};
    given.insert(given.end(), params.begin(), params.end());
    give(n.blocks[0].params, given);
    ir::Block body = recorded(n.blocks[0]);
    const ir::Node* before = recording_.stand_for(&n);
    finish(n, recording_.loop(going, carried, std::move(body), {}));
    recording_.stand_for(before);
  }
  const ir::Graph& graph_;
  Recording& recording_;
};

}  // namespace

std::vector<Tensor> inputs_like(const ir::Graph& graph) {
  std::vector<Tensor> made;
  for (size_t i = 0; i < graph.inputs(); ++i) {
    const ir::Type& t = graph.values[size_t(graph.body.params[i])].type;
    made.push_back(make_tensor_strided(ir::numbers(t.sizes), ir::numbers(t.strides), t.dtype, t.device, true));
  }
  return made;
}

bool varies(const ir::Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(), [](const ir::Value& v) { return v.type.varies != 0; });
}

ir::Graph instantiate(const ir::Graph& graph, TensorList params) {
  const GradModeGuard off(false);
  STRATA_CHECK_VALUE(params.size() == graph.inputs(), "graph: expected ", graph.inputs(), " tensors, got ",
                     params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const auto& [type, name] = graph.values[size_t(graph.body.params[i])];
    STRATA_CHECK_VALUE(as_exported(params[i], type), "exported program: argument ", name, ": expected ",
                       ir::to_string(type), ", got ",
                       params[i].defined() ? ir::to_string(ir::type_of(params[i])) : "None");
  }
  Recording recording(params, true);
  std::vector<Tensor> all(params.begin(), params.end());
  for (const Tensor& t : graph.captured) {
    recording.also(t);
    all.push_back(t);
  }
  ir::Graph made = recording.finish(Again(graph, recording).run(all));
  for (size_t i = 0; i < made.body.params.size(); ++i)
    made.values[size_t(made.body.params[i])].name = graph.values[size_t(graph.body.params[i])].name;
  made.captured = graph.captured;
  return made;
}

}  // namespace strata
