#include "jit/trace/instantiate.h"

#include "ir/rewrite.h"
#include "jit/trace/recorder.h"

namespace strata {

namespace {

class Again final : public ir::Interpreter {
 public:
  Again(const ir::Graph& graph, Recording& recording) : Interpreter(graph), recording_(recording) {}

 private:
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

ir::Graph instantiate(const ir::Graph& graph, TensorList params) {
  const GradModeGuard off(false);
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
