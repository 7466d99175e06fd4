#include "jit/compile/flow.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/parallel.h"
#include "ir/effect.h"
#include "jit/compile/plan.h"
#include "strata/generated/ops/copy.h"

namespace strata::jit {

namespace {

void find_defined(const ir::Block& b, std::unordered_set<ir::Id>& defined) {
  defined.insert(b.params.begin(), b.params.end());
  for (const ir::Node& n : b.nodes) {
    defined.insert(n.results.begin(), n.results.end());
    for (const ir::Block& inner : n.blocks) find_defined(inner, defined);
  }
}

template <class F>
void each_call(const ir::Block& b, F&& f) {
  for (const ir::Node& n : b.nodes) {
    if (n.kind == ir::Node::Call) f(n);
    for (const ir::Block& inner : n.blocks) each_call(inner, f);
  }
}

using Makers = std::unordered_map<ir::Id, const ir::Node*>;

void find_makers(const ir::Block& b, Makers& made) {
  for (const ir::Node& n : b.nodes) {
    for (ir::Id v : n.results) made[v] = &n;
    for (const ir::Block& inner : n.blocks) find_makers(inner, made);
  }
}

// Whether a value's memory is one that an operator of the blocks makes.
bool own(ir::Id v, const Makers& made) {
  const auto at = made.find(v);
  if (at == made.end()) return false;
  const ir::Node& n = *at->second;
  if (n.kind != ir::Node::Call) return n.kind == ir::Node::Constant;
  const Schema& schema = n.op->schema();
  bool marked = false;
  for (const Argument& r : schema.returns) marked |= !r.type.alias.empty();
  if (!marked) return ir::sharing(*n.op) == ir::Sharing::Marked;
  for (size_t i = 0; i < n.args.size(); ++i)
    if (!schema.args[i].type.alias.empty())
      for (ir::Id from : n.args[i].values)
        if (from != ir::kNone && !own(from, made)) return false;
  return true;
}

bool holds(const Tensor& t) { return *static_cast<const bool*>(static_cast<const void*>(t.bytes())); }

}  // namespace

Flow::Flow(const ir::Graph& graph, const ir::Node& node) : loops(node.kind == ir::Node::Loop) {
  const char* what = loops ? "loop" : "if";
  auto tensor = [&](ir::Id v) {
    STRATA_CHECK_NOT_IMPLEMENTED(v != ir::kNone && graph.values[size_t(v)].type.kind == ir::Type::Tensor,
                                 "compile: this ", what, " uses numbers that are no tensors; it is interpreted alone");
    return v;
  };
  auto argument = [&](size_t i) {
    STRATA_CHECK_NOT_IMPLEMENTED(node.args[i].kind == ir::Arg::One, "compile: this ", what,
                                 " has a constant condition or carries numbers; it is interpreted alone");
    return tensor(node.args[i].values[0]);
  };
  reads.push_back(argument(loops ? 1 : 0));
  for (size_t i = 2; loops && i < node.args.size(); ++i, ++carried) reads.push_back(argument(i));
  STRATA_CHECK_NOT_IMPLEMENTED(!loops || (node.args[0].kind == ir::Arg::Constant &&
                                          node.args[0].constant.get<int64_t>() == std::numeric_limits<int64_t>::max()),
                               "compile: a loop with a count is interpreted, not compiled");
  std::unordered_set<ir::Id> defined;
  std::vector<ir::Id> outer;
  std::vector<ir::Node> numbers;  // that blocks read: each has its own
  for (const ir::Block& b : node.blocks) find_defined(b, defined);
  for (const ir::Block& b : node.blocks) {
    std::vector<ir::Id> used;
    for (const ir::Node& n : b.nodes) ir::each_use(n, [&](ir::Id v) { used.push_back(v); });
    for (ir::Id v : b.results) used.push_back(tensor(v));
    for (ir::Id v : used) {
      STRATA_CHECK_NOT_IMPLEMENTED(!loops || v != b.params[0], "compile: a loop that uses the number of its turn is ",
                                   "interpreted, not compiled");
      if (defined.contains(v) || std::find(outer.begin(), outer.end(), v) != outer.end()) continue;
      if (graph.values[size_t(tensor(v))].type.number) {
        defined.insert(v);
        for (const ir::Node& n : graph.body.nodes)
          if (n.kind == ir::Node::Constant && n.results[0] == v) numbers.push_back(n);
        continue;
      }
      outer.push_back(v);
    }
    each_call(b, [&](const ir::Node& n) {
      draws |= ir::may_draw(*n.op);
      writes |= ir::sharing(*n.op) == ir::Sharing::Unknown && !ir::is_header(*n.op);
    });
  }
  Makers made;
  for (const ir::Block& b : node.blocks) find_makers(b, made);
  ir::each_written(node, [&](ir::Id v, const ir::Node&) { writes |= !own(v, made); });
  reads.insert(reads.end(), outer.begin(), outer.end());
  for (const ir::Block& b : node.blocks) {
    ir::Graph g;
    g.values = graph.values;
    g.body = b;
    g.body.nodes.insert(g.body.nodes.begin(), numbers.begin(), numbers.end());
    if (loops) g.body.params.erase(g.body.params.begin());
    g.body.params.insert(g.body.params.end(), outer.begin(), outer.end());
    graphs.push_back(std::move(g));
  }
}

std::vector<Tensor> Flow::run(TensorList operands) const {
  std::vector<Tensor> given(operands.begin() + 1, operands.end());
  // What a block hands on of its operands may lie where others will be.
  auto block = [&](size_t b) {
    std::vector<Tensor> results = plans[b]->run(given);
    for (Tensor& t : results)
      for (const Tensor& g : given)
        if (t.defined() && t.storage().get() == g.storage().get()) t = ops::clone(t);
    return results;
  };
  bool going = holds(operands[0]);
  if (!loops) return block(going ? 0 : 1);
  bool first = true;
  for (; going; first = false) {
    check_interrupt();
    std::vector<Tensor> results = block(0);
    going = holds(results[0]);
    std::move(results.begin() + 1, results.end(), given.begin());
  }
  given.resize(carried);
  for (Tensor& t : given)
    if (first) t = ops::clone(t);
  return given;
}

}  // namespace strata::jit
