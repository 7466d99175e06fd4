#include "ir/effect.h"

#include <memory>
#include <unordered_map>

#include "dispatch/info.h"
#include "ir/verify.h"

namespace strata::ir {

namespace {

// What is asked below; of an operator that the table lacks, the worst.
struct Facts {
  bool effect = true, draws = true, repeats = false, view = false, header = false, kernel = false;
  Sharing sharing = Sharing::Unknown;
  std::vector<size_t> unmarked;  // arguments that it writes
  int training = -1;             // the argument that says whether it does

  Facts() = default;
  Facts(const OpInfo& i, const Schema& schema) {
    auto acts = [&](const char* how) { return i.acts.find(how) != i.acts.npos; };
    effect = schema.writes() || !i.acts.empty();
    draws = acts("draws") || acts("untold");
    for (size_t a = 0; a < schema.args.size(); ++a)
      if (!schema.args[a].type.written && acts(("writes:" + schema.args[a].name).c_str())) unmarked.push_back(a);
    training = schema.arg_index("training");
    kernel = i.kind == "pointwise" || i.kind == "rows" || i.kind == "space";
    header = i.kind == "header";
    repeats = !schema.writes() && (i.acts.empty() || i.acts == "raises") && i.size.empty() &&
              (kernel || i.kind == "view" || i.kind == "twin" || (i.kind == "plan" && i.gradient != "parts"));
    view = i.kind == "view" && schema.arg_index("storage_offset") < 0;
    if (header || i.kind == "composite" || (i.gradient == "parts" && i.kind != "twin")) return;
    // C++ that writes may also change the header of what it writes.
    sharing = i.kind == "cpu" && i.shape.empty() && schema.writes() ? Sharing::Unknown : Sharing::Marked;
  }
};

// Passes ask many times for each node, and the table's record is a text. An operator is never freed.
const Facts& facts(const Operator& op) {
  thread_local std::unique_ptr<std::unordered_map<const Operator*, Facts>> known;  // a pointer: that room is scarce
  if (!known) known = std::make_unique<std::unordered_map<const Operator*, Facts>>();
  const auto at = known->find(&op);
  if (at != known->end()) return at->second;
  const std::optional<OpInfo> i = info(op);
  return known->emplace(&op, i ? Facts(*i, op.schema()) : Facts()).first->second;
}

}  // namespace

bool has_effect(const Operator& op) { return facts(op).effect; }
bool may_draw(const Operator& op) { return facts(op).draws; }
bool repeats(const Operator& op) { return facts(op).repeats; }
bool is_view(const Operator& op) { return facts(op).view; }
bool is_header(const Operator& op) { return facts(op).header; }
Sharing sharing(const Operator& op) { return facts(op).sharing; }

ArrayRef<size_t> unmarked_writes(const Node& call) {
  const Facts& known = facts(*call.op);
  if (known.unmarked.empty()) return {};
  if (known.training >= 0) {
    const Arg& training = call.args[size_t(known.training)];
    if (training.kind == Arg::Constant && training.constant.is<bool>() && !training.constant.get<bool>()) return {};
  }
  return {known.unmarked.data(), known.unmarked.size()};
}

Memory::Memory(const Graph& graph, bool apart) : parents_(graph.values.size()), flags_(graph.values.size()), g_(graph) {
  for (size_t v = 0; v < parents_.size(); ++v) parents_[v] = Id(v);
  for (Id v : graph.body.params) {
    if (!apart) join(v, graph.body.params[0]);
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
      bool kept = facts(*by.op).kernel;  // as an out= may not be
      for (Id r : by.results) kept &= r == kNone || same(g_.values[size_t(r)].type, g_.values[size_t(v)].type);
      flags_[size_t(of(v))] |= kWritten | (kept ? 0 : kReshaped);
    });
}

}  // namespace strata::ir
