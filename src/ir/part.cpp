#include "ir/part.h"

#include <algorithm>

#include "base/error.h"
#include "dispatch/info.h"
#include "ir/call.h"
#include "ir/effect.h"
#include "ir/rewrite.h"
#include "run/copy.h"

namespace strata::ir {

namespace {

std::string name_of(const Graph& g, Id v) {
  const std::string& name = g.values[size_t(v)].name;
  return str_cat('%', v, name.empty() ? "" : str_cat(" ('", name, "')"));
}

bool draws(const Node& n) {
  bool found = n.kind == Node::Call && may_draw(*n.op);
  for (const Block& b : n.blocks) found |= std::any_of(b.nodes.begin(), b.nodes.end(), draws);
  return found;
}

bool acts(const Node& n) {
  bool found = n.kind == Node::Call && has_effect(*n.op);
  for (const Block& b : n.blocks) found |= std::any_of(b.nodes.begin(), b.nodes.end(), acts);
  return found;
}

void rename(Node& n, const Renaming& to) {
  to.apply(n);
  for (Block& b : n.blocks) {
    for (Node& inner : b.nodes) rename(inner, to);
    to.apply(b.results);
  }
}

// What is needed, found from the last node to the first.
class Slice {
 public:
  Slice(const Graph& g, ArrayRef<Id> fed, ArrayRef<Id> fetch, bool whole)
      : g_(g), memory_(g), values_(g.values.size()), classes_(g.values.size()), kept(g.body.nodes.size()) {
    std::vector<char> place(g.values.size());
    for (Id v : g.body.params) place[size_t(v)] = kPlace;
    for (const Node& n : g.body.nodes)
      for (Id v : n.results)
        if (v != kNone) place[size_t(v)] = kPlace;
    auto check = [&](Id v, const char* what) {
      STRATA_CHECK_VALUE(v >= 0 && size_t(v) < place.size() && place[size_t(v)], "graph: %", v, " cannot be ", what,
                         ": it is no input and no node's result, or lies in an inner block");
      STRATA_CHECK_VALUE(g.values[size_t(v)].type.kind == Type::Tensor, "graph: %", v, " cannot be ", what,
                         ": it is a ", to_string(g.values[size_t(v)].type), ", no tensor");
    };
    for (Id v : fed) check(v, "fed"), values_[size_t(v)] |= kFed;
    for (Id v : fetch) check(v, "fetched"), values_[size_t(v)] |= kFetched;
    if (whole)
      for (Id v : g.body.results)
        if (v != kNone) need(v);
    bool drawn = false;
    for (size_t i = kept.size(); i-- > 0;) {
      const Node& n = g.body.nodes[i];
      const bool random = draws(n);
      bool keep = (whole && acts(n)) || (random && drawn);
      for (Id v : n.results) keep |= v != kNone && (values_[size_t(v)] & kWanted) && !(values_[size_t(v)] & kFed);
      each_written(n, [&](Id v, const Node&) { keep |= classes_[size_t(memory_.of(v))]; });
      if (!keep) continue;
      kept[i] = true;
      drawn |= random;
      each_use(n, [&](Id v) { need(v); });
    }
  }
  bool needed(Id v) const { return values_[size_t(v)] & kWanted; }
  bool fed(Id v) const { return values_[size_t(v)] & kFed; }
  // Whether a node that is kept, from this one on, may write the value's memory.
  bool written(Id v, size_t from) const {
    bool found = false;
    for (size_t i = from; i < kept.size() && !found; ++i)
      if (kept[i]) each_written(g_.body.nodes[i], [&](Id w, const Node&) { found |= memory_.of(w) == memory_.of(v); });
    return found;
  }

 private:
  enum : uint8_t { kPlace = 1, kFed = 1, kFetched = 2, kRead = 4, kWanted = kFetched | kRead };
  void need(Id v) {
    values_[size_t(v)] |= kRead;
    classes_[size_t(memory_.of(v))] = true;
  }
  const Graph& g_;
  const Memory memory_;
  std::vector<uint8_t> values_;
  std::vector<char> classes_;

 public:
  std::vector<char> kept;
};

}  // namespace

Part part_of(const Graph& g, ArrayRef<Id> fed, ArrayRef<Id> fetch, bool whole) {
  const Slice slice(g, fed, fetch, whole);
  Part part;
  Graph& out = part.graph;
  out.values = g.values;
  Renaming to(g);
  // What a value is called in the part, and what `fetch` gives of it.
  std::vector<Id> fetched(g.values.size(), kNone);
  Operator* clone = OperatorTable::instance().find("aten::clone");
  auto copy = [&](Id v) {
    Node n;
    n.op = clone;
    n.args = {Arg::one(v), {Arg::Constant, {}, {}}};
    const Id made = out.add(Type(out.values[size_t(v)].type));
    n.results = {made};
    out.body.nodes.push_back(std::move(n));
    return made;
  };
  auto keep = [&](Id v, Id as, size_t next) {
    if (std::find(fetch.begin(), fetch.end(), v) == fetch.end()) return;
    fetched[size_t(v)] = slice.written(v, next) ? copy(as) : as;
  };
  for (Id v : g.body.params) {
    out.body.params.push_back(v);
    part.needed.push_back(slice.needed(v) && !slice.fed(v));
  }
  for (Id v : fed) {
    const Id own = out.add(g.values[size_t(v)].type);
    out.body.params.push_back(own);
    to.replace(v, own);
  }
  for (Id v : fed) {
    if (slice.written(v, 0)) {
      const Id given = to(v), made = copy(given);
      to.replace(given, made);
    }
    keep(v, to(v), 0);
  }
  for (Id v : g.body.params)
    if (!slice.fed(v)) keep(v, v, 0);
  for (size_t i = 0; i < g.body.nodes.size(); ++i) {
    if (!slice.kept[i]) continue;
    Node n = g.body.nodes[i];
    for (Id& v : n.results)
      if (v != kNone && slice.fed(v)) v = out.add(g.values[size_t(v)].type);
    rename(n, to);
    const std::vector<Id> results = n.results;
    out.body.nodes.push_back(std::move(n));
    for (Id v : results)
      if (v != kNone && size_t(v) < g.values.size()) keep(v, v, i + 1);
  }
  if (whole)
    for (Id v : g.body.results) out.body.results.push_back(v == kNone ? v : to(v));
  for (Id v : fetch) out.body.results.push_back(fetched[size_t(v)]);
  return part;
}

std::vector<Tensor> run_part(const Graph& g, TensorList params, ArrayRef<Feed> feed, ArrayRef<Id> fetch, bool whole) {
  std::vector<Id> fed;
  for (const Feed& f : feed) {
    STRATA_CHECK_VALUE(std::find(fed.begin(), fed.end(), f.first) == fed.end(), "graph: ", name_of(g, f.first),
                       " is fed twice");
    fed.push_back(f.first);
  }
  Part part = part_of(g, {fed.data(), fed.size()}, fetch, whole);
  std::vector<Tensor> given(params.begin(), params.end());
  auto expect = [&](Id v, const Tensor& t, const char* what) {
    STRATA_CHECK_VALUE(fits(t, g.values[size_t(v)].type), "graph: ", what, ' ', name_of(g, v), ": expected ",
                       to_string(g.values[size_t(v)].type), ", as it was captured, got ", to_string(type_of(t)));
  };
  for (size_t i = 0; i < given.size(); ++i) {
    const Id v = g.body.params[i];
    if (given[i].defined()) {
      expect(v, given[i], "input");
      continue;
    }
    STRATA_CHECK_VALUE(!part.needed[i], "graph: ", name_of(g, v),
                       " is needed and was not given; feed it, or fetch what does not need it");
  }
  const BelowAutograd below;
  for (const Feed& f : feed) {
    const Type& type = g.values[size_t(f.first)].type;
    STRATA_CHECK_VALUE(f.second.defined() && f.second.dtype() == type.dtype && f.second.device() == type.device &&
                           f.second.sizes() == IntArrayRef(numbers(type.sizes)),
                       "graph: feed of ", name_of(g, f.first), ": expected ", to_string(type), ", got ",
                       f.second.defined() ? to_string(type_of(f.second)) : "None");
    given.push_back(f.second);
    if (fits(f.second, type)) continue;
    given.back() = make_tensor_strided(numbers(type.sizes), numbers(type.strides), type.dtype, type.device);
    eager::copy_values(given.back(), f.second);
  }
  return Interpreter(part.graph).run(given);
}

}  // namespace strata::ir
