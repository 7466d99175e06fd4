#include "ir/pass/common.h"

#include <unordered_map>

#include "ir/effect.h"
#include "ir/rewrite.h"

namespace strata::ir {

namespace {

class Common {
 public:
  explicit Common(Graph& g) : memory_(g), to_(g), writes_(g.values.size()) {}

  void block(Block& b) {
    std::unordered_map<std::string, size_t> known;  // places among the kept
    std::vector<Node> kept;
    for (Node& n : b.nodes) {
      to_.apply(n);
      for (Block& inner : n.blocks) block(inner);
      if (n.kind == Node::Call && repeats(*n.op)) {
        const auto [at, fresh] = known.try_emplace(key(n), kept.size());
        if (!fresh && joinable(n, kept[at->second].results)) {
          Node& first = kept[at->second];
          for (size_t i = 0; i < n.results.size(); ++i)
            if (n.results[i] != kNone) join(n.results[i], first.results[i]);
          if (first.span.empty()) first.span = std::move(n.span);
          continue;
        }
      }
      each_written(n, [&](Id v, const Node&) { ++writes_[size_t(memory_.of(v))]; });
      kept.push_back(std::move(n));
    }
    b.nodes = std::move(kept);
    to_.apply(b.results);
  }

 private:
  // The call in words, with the count of writes to each operand's memory before it.
  std::string key(const Node& n) const {
    std::string text = n.op->name;
    for (const Arg& a : n.args) {
      text += a.kind == Arg::List ? "[" : ",";
      if (a.kind == Arg::Constant) text += constant_key(a.constant);
      for (Id v : a.values) text += v == kNone ? " None" : str_cat(" %", v, ".", writes_[size_t(memory_.of(v))]);
    }
    return text;
  }
  bool joinable(const Node& n, const std::vector<Id>& with) const {
    if (n.results.size() != with.size()) return false;
    for (size_t i = 0; i < with.size(); ++i) {
      const Id a = n.results[i], b = with[i];
      if ((a == kNone) != (b == kNone)) return false;
      if (a == kNone) continue;
      const bool one = memory_.of(a) == memory_.of(b);  // views of one memory
      if (one ? memory_.reshaped(a) : memory_.written(a) || memory_.written(b)) return false;
      if (memory_.returned(a) && memory_.returned(b)) return false;
    }
    return true;
  }

  void join(Id gone, Id kept) {
    to_.replace(gone, kept);
    memory_.join(gone, kept);
  }

  Memory memory_;
  Renaming to_;
  std::vector<size_t> writes_;
};

}  // namespace

std::string join_common(Graph& graph) {
  Common(graph).block(graph.body);
  return {};
}

}  // namespace strata::ir
