#include "ir/pass/losses.h"

#include "ir/effect.h"
#include "ir/rewrite.h"
#include "ir/verify.h"

namespace strata::ir {

namespace {

class Losses {
 public:
  explicit Losses(Graph& g) : g_(g), uses_(g.values.size()) { count(g.body); }

  void block(Block& b) {
    for (Node& n : b.nodes)
      for (Block& inner : n.blocks) block(inner);
    for (size_t i = 0; i < b.nodes.size(); ++i)
      if (is_call(b.nodes[i], "aten::nll_loss_backward")) join(b, i);
    std::erase_if(b.nodes, [](const Node& n) { return n.kind == Node::Call && !n.op; });
  }

 private:
  static bool is_call(const Node& n, std::string_view name) {
    return n.kind == Node::Call && n.op && n.op->name == name;
  }

  void count(const Block& b) {
    for (const Node& n : b.nodes) {
      for (const Arg& a : n.args)
        for (Id v : a.values)
          if (v != kNone) ++uses_[size_t(v)];
      for (const Block& inner : n.blocks) count(inner);
    }
    for (Id v : b.results)
      if (v != kNone) ++uses_[size_t(v)];
  }

  // The operator's call takes the place of the second of the two: nothing in between may write what the first reads.
  void join(Block& b, size_t first) {
    Node& loss = b.nodes[first];
    const Id made = loss.results[0];
    if (made == kNone || uses_[size_t(made)] != 1 || loss.args[1].kind != Arg::One) return;
    size_t second = first + 1;
    for (;; ++second) {
      if (second == b.nodes.size()) return;
      bool reads = false, writes = false;
      each_use(b.nodes[second], [&](Id v) { reads |= v == made; });
      if (reads) break;
      each_written(b.nodes[second], [&](Id, const Node&) { writes = true; });
      if (writes) return;
    }
    Node& softmax = b.nodes[second];
    if (!is_call(softmax, "aten::_log_softmax_backward_data") || softmax.args[0].kind != Arg::One ||
        softmax.args[0].values[0] != made || softmax.args[1].kind != Arg::One)
      return;
    const Id output = softmax.args[1].values[0];
    const Type &of = g_.values[size_t(output)].type, &given = g_.values[size_t(loss.args[1].values[0])].type;
    const int64_t dims = int64_t(of.sizes.size()), classes = dims == 1 ? 0 : 1;
    if (!same(of, given) || dims == 0 || (softmax.args[2].constant.get<int64_t>() + dims) % dims != classes) return;
    Node joined;
    joined.op = &OperatorTable::instance().get("strata::_nll_log_softmax_backward");
    joined.args = loss.args;
    joined.args[1] = softmax.args[1];
    joined.results = softmax.results;
    joined.gradient = softmax.gradient;
    joined.span = softmax.span;
    const auto types = types_of_call(g_, joined);
    if (!types || types->size() != 1 || !same((*types)[0], g_.values[size_t(softmax.results[0])].type)) return;
    loss.op = nullptr;
    softmax = std::move(joined);
  }

  Graph& g_;
  std::vector<int> uses_;
};

}  // namespace

std::string join_losses(Graph& graph) {
  Losses(graph).block(graph.body);
  return {};
}

}  // namespace strata::ir
