#include "ir/pass.h"

#include <chrono>

#include "base/error.h"
#include "ir/pass/common.h"
#include "ir/pass/dead.h"
#include "ir/pass/fold.h"
#include "ir/pass/functional.h"
#include "ir/pass/losses.h"
#include "ir/pass/simplify.h"
#include "ir/verify.h"

namespace strata::ir {

ArrayRef<Pass> all_passes() {
  static constexpr Pass passes[] = {{"functional", make_functional}, {"fold", fold_constants}, {"simplify", simplify},
                                    {"common", join_common},         {"losses", join_losses},  {"dead", remove_dead}};
  return {passes, std::size(passes)};
}

const Pass& pass_named(std::string_view name) {
  std::string names;
  for (const Pass& p : all_passes()) {
    if (name == p.name) return p;
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw_error(ErrorKind::Value, str_cat("graph: unknown pass '", name, "'; expected one of ", names));
}

std::string PassLog::text() const {
  std::string out;
  for (const Line& l : lines)
    out += str_cat(l.pass, ": ", l.before, " -> ", l.after, " nodes, ", int64_t(l.microseconds + 0.5), " us",
                   l.note.empty() ? "" : "; " + l.note, "\n");
  return out;
}

void run_passes(Graph& graph, ArrayRef<Pass> passes, PassLog& log) {
  for (const Pass& p : passes) {
    const auto start = std::chrono::steady_clock::now();
    PassLog::Line line{p.name, count_nodes(graph.body), 0, 0, p.run(graph)};
    renumber(graph);
    line.after = count_nodes(graph.body);
    line.microseconds = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    log.lines.push_back(std::move(line));
#ifndef NDEBUG
    verify(graph);
#endif
  }
}

namespace {

struct Renumbering {
  std::vector<Id> to;
  std::vector<Value> values;

  void define(Graph& g, Id& v) {
    if (v == kNone) return;
    values.push_back(std::move(g.values[size_t(v)]));
    to[size_t(v)] = Id(values.size()) - 1;
    v = to[size_t(v)];
  }
  void use(Id& v) {
    if (v != kNone) v = to[size_t(v)];
  }
  void block(Graph& g, Block& b) {
    for (Id& v : b.params) define(g, v);
    for (Node& n : b.nodes) {
      for (Arg& a : n.args)
        for (Id& v : a.values) use(v);
      for (Block& inner : n.blocks) block(g, inner);
      for (Id& v : n.results) define(g, v);
    }
    for (Id& v : b.results) use(v);
  }
};

}  // namespace

void renumber(Graph& graph) {
  Renumbering r;
  r.to.resize(graph.values.size());
  r.block(graph, graph.body);
  graph.values = std::move(r.values);
}

}  // namespace strata::ir
