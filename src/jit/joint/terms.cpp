#include "jit/joint/terms.h"

#include <algorithm>

namespace strata::jit {

std::optional<Terms> term_by_term(const ir::Graph& backward, const std::vector<char>& apart) {
  std::vector<const ir::Node*> maker(backward.values.size());
  for (const ir::Node& n : backward.body.nodes)
    for (ir::Id v : n.results)
      if (v != ir::kNone) maker[size_t(v)] = &n;
  // The value that the sum goes on from, and the term that it adds.
  const auto adds = [&](ir::Id v) {
    const ir::Node* n = maker[size_t(v)];
    return n && n->gradient == ir::Node::Total && n->kind == ir::Node::Call &&
           n->op->schema().full_name() == "aten::add.Tensor" && n->args.size() >= 2 && n->args[0].values.size() == 1 &&
           n->args[1].values.size() == 1;
  };
  Terms made;
  std::vector<ir::Id> results;
  for (size_t k = 0; k < backward.body.results.size(); ++k) {
    ir::Id v = backward.body.results[k];
    std::vector<ir::Id> terms;
    while (v != ir::kNone && apart[k] && adds(v)) {
      terms.push_back(maker[size_t(v)]->args[1].values[0]);
      v = maker[size_t(v)]->args[0].values[0];
    }
    if (v != ir::kNone) terms.push_back(v);
    made.count.push_back(terms.size());
    results.insert(results.end(), terms.rbegin(), terms.rend());
  }
  if (std::ranges::all_of(made.count, [](size_t n) { return n <= 1; })) return {};
  // A sum of other values may be left without a use; the passes of a plan drop it.
  made.graph = backward;
  made.graph.body.results = std::move(results);
  return made;
}

}  // namespace strata::jit
