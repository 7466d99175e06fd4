#include "ir/effect.h"

#include "dispatch/info.h"
#include "ir/verify.h"

namespace strata::ir {

namespace {

bool is_kernel(const OpInfo& i) { return i.kind == "pointwise" || i.kind == "rows" || i.kind == "space"; }

}  // namespace

bool has_effect(const Operator& op) {
  const std::optional<OpInfo> i = info(op);
  return !i || op.schema().writes() || !i->acts.empty();
}

bool may_draw(const Operator& op) {
  const std::optional<OpInfo> i = info(op);
  return !i || i->acts.find("draws") != std::string::npos || i->acts.find("untold") != std::string::npos;
}

bool repeats(const Operator& op) {
  const std::optional<OpInfo> i = info(op);
  return i && !op.schema().writes() && (i->acts.empty() || i->acts == "raises") && i->size.empty() &&
         (is_kernel(*i) || i->kind == "view" || (i->kind == "plan" && i->gradient != "parts"));
}

bool is_view(const Operator& op) {
  const std::optional<OpInfo> i = info(op);
  return i && i->kind == "view" && op.schema().arg_index("storage_offset") < 0;
}

Sharing sharing(const Operator& op) {
  const std::optional<OpInfo> i = info(op);
  if (!i || i->kind == "header" || i->kind == "composite" || i->gradient == "parts") return Sharing::Unknown;
  // C++ that writes may also change the header of what it writes.
  return i->kind == "cpu" && i->shape.empty() && op.schema().writes() ? Sharing::Unknown : Sharing::Marked;
}

Memory::Memory(const Graph& graph) : parents_(graph.values.size()), flags_(graph.values.size()), g_(graph) {
  for (size_t v = 0; v < parents_.size(); ++v) parents_[v] = Id(v);
  for (Id v : graph.body.params) {
    join(v, graph.body.params[0]);
    flags_[size_t(of(v))] |= kOutside;
  }
  block(graph.body);
  mark(graph.body);
  for (Id v : graph.body.results)
    if (v != kNone) flags_[size_t(of(v))] |= kReturned;
}

Id Memory::of(Id v) const {
  while (parents_[size_t(v)] != v) v = parents_[size_t(v)] = parents_[size_t(parents_[size_t(v)])];
  return v;
}

void Memory::join(Id a, Id b) {
  if (a == kNone || b == kNone) return;
  a = of(a), b = of(b);
  if (a == b) return;
  parents_[size_t(a)] = b;
  flags_[size_t(b)] |= flags_[size_t(a)];
}

void Memory::block(const Block& b) {
  for (const Node& n : b.nodes) node(n);
}

void Memory::node(const Node& n) {
  for (const Block& b : n.blocks) block(b);
  if (n.kind == Node::Call) call(n);
  if (n.kind == Node::If)
    for (size_t i = 0; i < n.results.size(); ++i)
      for (const Block& b : n.blocks) join(n.results[i], b.results[i]);
  if (n.kind == Node::Loop)
    for (size_t i = 0; i < n.results.size(); ++i) {
      const Block& b = n.blocks[0];
      join(n.results[i], b.params[i + 1]);
      join(n.results[i], b.results[i + 1]);
      for (Id v : n.args[i + 2].values) join(n.results[i], v);
    }
}

void Memory::call(const Node& n) {
  const Schema& schema = n.op->schema();
  if (sharing(*n.op) == Sharing::Unknown) {
    Id first = kNone;
    for (const Arg& a : n.args)
      for (Id v : a.values) {
        if (v == kNone) continue;
        for (Id r : n.results) join(r, v);
        if (first != kNone && schema.writes()) join(v, first);
        first = v;
      }
    return;
  }
  // Results lie in the order of the returns; a list is as long as what is left.
  size_t at = 0, lists = 0, single = 0;
  for (const Argument& r : schema.returns) {
    lists += r.type.is_tensor() && r.type.list;
    single += r.type.is_tensor() && !r.type.list;
  }
  for (const Argument& r : schema.returns) {
    if (!r.type.is_tensor()) continue;
    const size_t count = !r.type.list ? 1 : lists == 1 ? n.results.size() - single : n.results.size() - at;
    if (r.type.list)  // they may lie in one memory
      for (size_t k = at; k < std::min(at + count, n.results.size()); ++k) join(n.results[k], n.results[at]);
    for (size_t k = at; k < std::min(at + count, n.results.size()); ++k)
      for (size_t i = 0; i < n.args.size(); ++i)
        if (!r.type.alias.empty() && schema.args[i].type.alias == r.type.alias)
          for (Id v : n.args[i].values) join(n.results[k], v);
    if (!r.type.list || lists == 1) at += count;
  }
}

void Memory::mark(const Block& b) {
  for (const Node& n : b.nodes)
    each_written(n, [&](Id v, const Node& by) {
      const std::optional<OpInfo> i = info(*by.op);
      bool kept = i && is_kernel(*i);  // as an out= may not be
      for (Id r : by.results) kept &= r == kNone || same(g_.values[size_t(r)].type, g_.values[size_t(v)].type);
      flags_[size_t(of(v))] |= kWritten | (kept ? 0 : kReshaped);
    });
}

}  // namespace strata::ir
