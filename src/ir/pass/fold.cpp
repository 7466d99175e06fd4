#include "ir/pass/fold.h"

#include <unordered_map>

#include "base/error.h"
#include "ir/effect.h"
#include "ir/rewrite.h"

namespace strata::ir {

namespace {

class Fold {
 public:
  explicit Fold(Graph& g) : g_(g), memory_(g), to_(g), full_(OperatorTable::instance().get("aten::full")) {}

  void block(Block& b) {
    std::vector<Node> kept;
    nodes(b, kept);
    b.nodes = std::move(kept);
  }

 private:
  void nodes(Block& b, std::vector<Node>& kept) {
    for (Node& n : b.nodes) {
      to_.apply(n);
      for (Arg& a : n.args)
        if (a.kind == Arg::One)
          if (auto at = numbers_.find(a.values[0]); at != numbers_.end() && n.kind != Node::If)
            a = {Arg::Constant, at->second, {}};
      if (n.kind == Node::If) {
        auto at = numbers_.find(n.args[0].values[0]);
        if (at != numbers_.end()) {
          taken(n, n.blocks[at->second.get<bool>() ? 0 : 1], kept);
          continue;
        }
      }
      if (n.kind == Node::Loop && turns_never(n)) {
        for (size_t i = 0; i < n.results.size(); ++i) carried(n, i, kept);
        continue;
      }
      for (Block& inner : n.blocks) block(inner);
      if (n.kind == Node::Constant) {
        if (n.constant.defined())
          tensors_.emplace(n.results[0], n.constant);
        else
          numbers_.emplace(n.results[0], n.args[0].constant);
      }
      if (n.kind == Node::Call) call(n);
      kept.push_back(std::move(n));
    }
    to_.apply(b.results);
  }

  void taken(Node& n, Block& b, std::vector<Node>& kept) {
    nodes(b, kept);
    for (size_t i = 0; i < n.results.size(); ++i)
      if (n.results[i] != kNone) to_.replace(n.results[i], b.results[i]);
  }

  static bool turns_never(const Node& n) {
    const Arg &count = n.args[0], &going = n.args[1];
    return (count.kind == Arg::Constant && count.constant.get<int64_t>() <= 0) ||
           (going.kind == Arg::Constant && !going.constant.get<bool>());
  }
  void carried(const Node& n, size_t i, std::vector<Node>& kept) {
    const Arg& a = n.args[i + 2];
    const Id v = n.results[i];
    if (v == kNone) return;
    if (a.kind == Arg::One) return to_.replace(v, a.values[0]);
    Node number;
    number.kind = Node::Constant;
    number.args = {a};
    number.results = {v};
    number.span = n.span;
    numbers_.emplace(v, a.constant);
    kept.push_back(std::move(number));
  }

  void call(Node& n) {
    if (!repeats(*n.op) || is_view(*n.op) || n.results.size() != 1 || n.results[0] == kNone) return;
    const Type& t = g_.values[size_t(n.results[0])].type;
    if (!t.sizes.empty() || t.number || !t.device.is_cpu()) return;
    std::vector<Tensor> operands;
    for (const Arg& a : n.args) {
      if (a.kind == Arg::List) return;
      for (Id v : a.values) {
        auto at = tensors_.find(v);
        if (at == tensors_.end() || memory_.written(v)) return;
        operands.push_back(at->second);
      }
    }
    const std::optional<Tensor> made = result_of_call(n, operands);
    if (!made || !fits(*made, t)) return;
    if (!memory_.written(n.results[0])) tensors_.emplace(n.results[0], *made);
    if (n.op == &full_) return;
    const Schema& schema = full_.schema();
    const size_t count = schema.args.size();
    n.op = &full_;
    n.args.clear();
    for (size_t i = 0; i < count; ++i) {
      const std::string& name = schema.args[i].name;
      IValue v = name == "size"         ? IValue(std::vector<int64_t>())
                 : name == "fill_value" ? IValue(number_in(*made))
                 : name == "dtype"      ? IValue(t.dtype)
                 : name == "device"     ? IValue(t.device)
                                        : IValue();
      n.args.push_back({Arg::Constant, std::move(v), {}});
    }
  }

  Graph& g_;
  const Memory memory_;
  Renaming to_;
  Operator& full_;
  std::unordered_map<Id, Tensor> tensors_;
  std::unordered_map<Id, IValue> numbers_;
};

}  // namespace

std::string fold_constants(Graph& graph) {
  Fold(graph).block(graph.body);
  return {};
}

}  // namespace strata::ir
