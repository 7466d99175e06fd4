#include "jit/joint/restore.h"

#include <algorithm>

#include "base/error.h"
#include "ir/verify.h"

namespace strata::jit {

namespace {

// Indices below a limit, each larger than the one before.
void check_indices(const std::vector<int>& list, size_t limit, const char* what) {
  int64_t last = -1;
  for (int i : list) {
    STRATA_CHECK_VALUE(i > last && size_t(i) < limit, "graph: ", what, ": expected growing indices below ", limit,
                       ", got ", i, " after ", last);
    last = i;
  }
}

}  // namespace

Captured restore(ir::Graph graph, int64_t forward_nodes, int64_t outputs, std::vector<int> tangent_of,
                 std::vector<int> wanted, bool step) {
  const ir::Block& body = graph.body;
  STRATA_CHECK_VALUE(forward_nodes >= 0 && size_t(forward_nodes) <= body.nodes.size(), "graph: expected at most ",
                     body.nodes.size(), " nodes of the forward, got ", forward_nodes);
  STRATA_CHECK_VALUE(outputs >= 0 && size_t(outputs) <= body.results.size(), "graph: expected at most ",
                     body.results.size(), " results of the forward, got ", outputs);
  STRATA_CHECK_VALUE(tangent_of.size() <= graph.inputs(), "graph: there are more gradients of results than inputs");
  check_indices(tangent_of, size_t(outputs), "results that have a gradient");
  const size_t inputs = graph.inputs() - tangent_of.size();
  check_indices(wanted, body.params.size() - tangent_of.size(), "inputs that have a gradient");
  STRATA_CHECK_VALUE(!step || (tangent_of.empty() && size_t(forward_nodes) == body.nodes.size()),
                     "graph: a whole step has no backward beside it");
  const size_t gradients = body.results.size() - size_t(outputs);
  STRATA_CHECK_VALUE(gradients == (tangent_of.empty() ? 0 : wanted.size()), "graph: expected ", wanted.size(),
                     " gradients after ", outputs, " results, got ", gradients);
  auto type = [&](ir::Id v) -> const ir::Type& { return graph.values[size_t(v)].type; };
  for (ir::Id v : body.params)
    STRATA_CHECK_VALUE(type(v).kind == ir::Type::Tensor, "graph: input %", v, ": expected a tensor, got ",
                       ir::to_string(type(v)));
  for (size_t r = 0; r < body.results.size(); ++r) {
    const ir::Id v = body.results[r];
    STRATA_CHECK_VALUE(v != ir::kNone ? type(v).kind == ir::Type::Tensor : r >= size_t(outputs), "graph: result ", r,
                       ": expected a tensor, got ", v == ir::kNone ? "None" : ir::to_string(type(v)));
  }
  // Whose strides may be others.
  auto alike = [](const ir::Type& a, const ir::Type& b) {
    return a.dtype == b.dtype && a.device == b.device && a.sizes.size() == b.sizes.size() &&
           std::equal(a.sizes.begin(), a.sizes.end(), b.sizes.begin(),
                      [](const SymInt& x, const SymInt& y) { return x.hint() == y.hint(); });
  };
  for (size_t t = 0; t < tangent_of.size(); ++t)
    STRATA_CHECK_VALUE(alike(type(body.params[inputs + t]), type(body.results[size_t(tangent_of[t])])),
                       "graph: the gradient of result ", tangent_of[t], " is another kind of tensor");
  for (size_t k = 0; k < gradients; ++k) {
    const ir::Id v = body.results[size_t(outputs) + k];
    if (v == ir::kNone) continue;
    const size_t w = size_t(wanted[k]);
    const ir::Type &of = type(body.params[w < inputs ? w : w + tangent_of.size()]), &is = type(v);
    STRATA_CHECK_VALUE(alike(of, is), "graph: the gradient of input ", wanted[k], ": expected ", ir::to_string(of),
                       ", got ", ir::to_string(is));
  }
  Captured captured;
  captured.graph = std::move(graph);
  captured.forward_nodes = size_t(forward_nodes);
  captured.outputs = size_t(outputs);
  captured.tangent_of = std::move(tangent_of);
  captured.wanted = std::move(wanted);
  captured.step = step;
  ir::verify(captured.forward());
  return captured;
}

}  // namespace strata::jit
