#include "ir/pass/dead.h"

#include <algorithm>

#include "ir/effect.h"

namespace strata::ir {

namespace {

class Dead {
 public:
  explicit Dead(const Graph& g) : read_(g.values.size()) {}

  // From the end, so that what only dead nodes read is dead, too.
  void block(Block& b) {
    for (Id v : b.results) read(v);
    std::vector<Node> kept;
    for (size_t i = b.nodes.size(); i-- > 0;) {
      Node& n = b.nodes[i];
      if (!stays(n)) continue;
      for (Block& inner : n.blocks) block(inner);
      for (const Arg& a : n.args)
        for (Id v : a.values) read(v);
      kept.push_back(std::move(n));
    }
    std::reverse(kept.begin(), kept.end());
    b.nodes = std::move(kept);
  }

 private:
  void read(Id v) {
    if (v != kNone) read_[size_t(v)] = true;
  }
  bool stays(const Node& n) const {
    return std::ranges::any_of(n.results, [&](Id v) { return v != kNone && read_[size_t(v)]; }) || acts(n);
  }
  static bool acts(const Node& n) {
    if (n.kind == Node::Call) return has_effect(*n.op);
    return std::ranges::any_of(n.blocks, [](const Block& b) { return std::ranges::any_of(b.nodes, acts); });
  }
  std::vector<bool> read_;
};

}  // namespace

std::string remove_dead(Graph& graph) {
  Dead(graph).block(graph.body);
  return {};
}

}  // namespace strata::ir
