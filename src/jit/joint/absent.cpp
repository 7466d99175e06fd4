#include "jit/joint/absent.h"

#include <algorithm>

#include "ir/effect.h"
#include "ir/pass/dead.h"
#include "ir/pass/functional.h"
#include "ir/rewrite.h"

namespace strata::jit {

namespace {

using ir::Id;

bool same(const ir::Type& a, const ir::Type& b) {
  return a.dtype == b.dtype && a.device == b.device && ir::numbers(a.sizes) == ir::numbers(b.sizes) &&
         ir::numbers(a.strides) == ir::numbers(b.strides);
}

class Pruning {
 public:
  Pruning(ir::Graph backward, size_t saved, const std::vector<char>& given, bool own)
      : g_(std::move(backward)),
        memory_(g_),
        own_(own),
        hangs_(g_.values.size(), kNothing),
        moved_(g_.values.size()),
        fresh_(g_.values.size()),
        to_(g_) {
    std::vector<Id> params;
    for (size_t p = 0; p < g_.body.params.size(); ++p) {
      const Id v = g_.body.params[p];
      const bool tangent = p >= saved && p < saved + given.size();
      if (tangent) set(v, given[p - saved] ? kGiven : kAbsent);
      if (!tangent || given[p - saved]) params.push_back(v);
    }
    g_.body.params = std::move(params);
  }

  std::optional<ir::Graph> run() {
    std::vector<ir::Node> all;
    std::swap(all, g_.body.nodes);
    each_left(all, [&](ir::Node left) { g_.body.nodes.push_back(std::move(left)); });
    for (Id& v : g_.body.results) {
      if (v == ir::kNone) continue;
      refuse_unclear(v);
      v = of(v) == kGiven ? to_(v) : ir::kNone;
    }
    if (failed_) return {};
    return std::move(g_);
  }

 private:
  // On which tangents a value hangs: on none, on absent ones alone, on one that is given.
  enum Hangs : uint8_t { kNothing, kAbsent, kGiven };
  Hangs of(Id v) const { return hangs_[size_t(v)]; }
  void set(Id v, Hangs found) {
    if (v != ir::kNone) hangs_[size_t(v)] = found;
  }

  // A backward that somebody wrote runs where any of its gradients is given, with zeros for the others, and whatever it
  // makes is given then.
  static bool is_own(const ir::Node& n) { return n.gradient == ir::Node::Own; }
  void begin_function(const std::vector<ir::Node>& all, size_t first) {
    function_ = kNothing;
    for (size_t i = first; i < all.size() && is_own(all[i]) && all[i].span == all[first].span; ++i)
      ir::each_use(all[i], [&](Id v) { function_ = std::max(function_, of(v)); });
  }

  template <class F>
  void each_left(std::vector<ir::Node>& all, F&& keep) {
    std::string span;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool goes_on = i > 0 && is_own(all[i]) && is_own(all[i - 1]) && all[i].span == span;
      if (is_own(all[i]) && !goes_on) begin_function(all, i);
      span = all[i].span;
      if (std::optional<ir::Node> left = pruned(std::move(all[i]))) keep(std::move(*left));
    }
  }

  Hangs hangs(const ir::Node& n) const {
    if (n.gradient == ir::Node::Own) return function_;
    Hangs most = kNothing;
    ir::each_use(n, [&](Id v) { most = std::max(most, of(v)); });
    return most;
  }

  // What is left of a node, if anything.
  std::optional<ir::Node> pruned(ir::Node n) {
    const Hangs found = hangs(n);
    if (n.gradient == ir::Node::Sum || n.gradient == ir::Node::Total) ir::each_use(n, [&](Id v) { refuse_unclear(v); });
    std::vector<Id> written;
    ir::each_written(n, [&](Id v, const ir::Node&) { written.push_back(v); });
    if (!written.empty()) return writing(std::move(n), written);
    if (n.kind == ir::Node::If && found == kGiven && of(n.args[0].values[0]) != kAbsent) {
      branches(n);
      return n;
    }
    mark(n, found);
    if (found == kAbsent || (found == kGiven && is_sum(n) && sum(n))) return {};
    if (found == kGiven) ir::each_use(n, [&](Id v) { zeros_for(v, n.span); });
    retype(n);
    return n;
  }

  // What it writes hangs on what it writes there, with all that shares the memory.
  std::optional<ir::Node> writing(ir::Node n, const std::vector<Id>& written) {
    const auto is_written = [&](Id v) { return std::find(written.begin(), written.end(), v) != written.end(); };
    Hangs target = kNothing, source = kNothing;
    ir::each_use(n, [&](Id v) {
      Hangs& most = is_written(v) ? target : source;
      most = std::max(most, of(v));
    });
    const bool whole = n.kind == ir::Node::Call && n.op->name == "aten::copy_" && fresh_[size_t(written[0])];
    for (Id v : written) failed_ |= memory_.outside(v) || to_(v) != v;
    failed_ |= n.kind != ir::Node::Call || (target == kAbsent && source == kGiven);
    const Hangs found = target == kNothing && source == kAbsent && !whole ? kNothing : std::max(target, source);
    for (size_t v = 0; v < fresh_.size(); ++v)
      for (Id w : written)
        if (memory_.of(Id(v)) == memory_.of(w)) hangs_[v] = found;
    for (Id v : n.results) set(v, found);
    if (found == kAbsent) return {};
    ir::each_use(n, [&](Id v) { zeros_for(v, n.span); });
    retype(n);
    return n;
  }

  void mark(const ir::Node& n, Hangs found) {
    if (n.kind == ir::Node::Call && n.op->name.starts_with("aten::empty")) fresh_[size_t(n.results[0])] = true;
    for (const ir::Block& b : n.blocks) {
      for (Id v : b.params) set(v, found);
      for (const ir::Node& inner : b.nodes) mark(inner, found);
    }
    for (Id v : n.results) set(v, found);
  }

  // Each by itself: a result that one of them makes of what is given, the other's too.
  void branches(ir::Node& n) {
    to_.apply(n);
    for (ir::Block& b : n.blocks) {
      std::vector<ir::Node> kept;
      each_left(b.nodes, [&](ir::Node left) { kept.push_back(std::move(left)); });
      b.nodes = std::move(kept);
    }
    for (size_t i = 0; i < n.results.size(); ++i) {
      Hangs most = kNothing;
      for (ir::Block& b : n.blocks)
        if (Id& v = b.results[i]; v != ir::kNone) {
          most = std::max(most, of(v));
          if (of(v) == kAbsent) zeros_for(v, n.span);
          failed_ |= moved(v);
          v = to_(v);
        }
      set(n.results[i], most);
    }
  }

  // a + b of one dtype and size: of two gradients, the engine's or a formula's, whose operator has two results then.
  // Not one of an autograd.Function, which gets zeros.
  bool is_sum(const ir::Node& n) const {
    if (n.kind != ir::Node::Call || n.gradient == ir::Node::Own || n.op->name != "aten::add.Tensor" ||
        n.args[0].kind != ir::Arg::One || n.args[1].kind != ir::Arg::One || n.args[2].kind != ir::Arg::Constant)
      return false;
    const ir::Type &a = type(n.args[0].values[0]), &b = type(n.args[1].values[0]);
    return !a.number && !b.number && a.dtype == b.dtype && ir::numbers(a.sizes) == ir::numbers(b.sizes) &&
           n.args[2].constant.is<Scalar>() && n.args[2].constant.get<Scalar>().to_complex() == 1.0;
  }

  // Whether it is one of its operands then.
  bool sum(const ir::Node& n) {
    const Id a = n.args[0].values[0], b = n.args[1].values[0];
    if (of(a) != kAbsent && of(b) != kAbsent) return false;
    to_.replace(n.results[0], of(a) == kAbsent ? b : a);
    return true;
  }

  // Whether what stands for it now is laid out otherwise than it was recorded.
  bool moved(Id v) const { return moved_[size_t(to_(v))] || !same(type(to_(v)), type(v)); }

  // Gives it the operands that there are, and its results the types that these make.
  void retype(ir::Node& n) {
    bool any = false;
    ir::each_use(n, [&](Id v) { any |= moved(v); });
    rename(n);
    if (!any) return;
    const std::optional<std::vector<ir::Type>> types =
        n.kind == ir::Node::Call ? ir::types_of_call(g_, n) : std::nullopt;
    if (!types || types->size() != n.results.size()) {
      failed_ = true;
      return;
    }
    for (size_t i = 0; i < types->size(); ++i) {
      if (n.results[i] == ir::kNone) continue;
      ir::Type& was = g_.values[size_t(n.results[i])].type;
      moved_[size_t(n.results[i])] = !same(was, (*types)[i]);
      was.sizes = (*types)[i].sizes, was.strides = (*types)[i].strides;
    }
  }

  void rename(ir::Node& n) {
    to_.apply(n);
    for (ir::Block& b : n.blocks) {
      for (ir::Node& inner : b.nodes) rename(inner);
      to_.apply(b.results);
    }
  }

  // In the place of a gradient that is absent; before the node of the body that is at hand, for blocks of it, too.
  void zeros_for(Id v, const std::string& span) {
    if (of(v) != kAbsent || to_(v) != v) return;
    const std::vector<int64_t> sizes = ir::numbers(type(v).sizes);
    ir::Node made;
    made.op = &OperatorTable::instance().get("aten::zeros");
    made.span = span;
    for (const Argument& a : made.op->schema().args)
      made.args.push_back({ir::Arg::Constant,
                           a.name == "size"     ? IValue(sizes)
                           : a.name == "dtype"  ? IValue(type(v).dtype)
                           : a.name == "device" ? IValue(type(v).device)
                                                : IValue(),
                           {},
                           {}});
    const auto types = ir::types_of_call(g_, made);
    STRATA_INTERNAL(types && types->size() == 1, "zeros of a gradient's type");
    const Id zero = g_.add((*types)[0]);
    hangs_.push_back(kNothing);
    moved_.push_back(false);
    made.results = {zero};
    g_.body.nodes.push_back(std::move(made));
    to_.replace(v, zero);
  }

  void refuse_unclear(Id gradient) const {
    STRATA_CHECK_NOT_IMPLEMENTED(
        !own_ || of(gradient) != kNothing,
        "graph: a backward from some of its results only, where the backward of an "
        "autograd.Function, or a hook, gives a gradient that does not hang on the one that it gets: "
        "multiply by that one, or give gradients to all results");
  }

  const ir::Type& type(Id v) const { return g_.values[size_t(v)].type; }

  ir::Graph g_;
  const ir::Memory memory_;
  const bool own_;
  bool failed_ = false;
  Hangs function_ = kNothing;  // of the one at hand
  std::vector<Hangs> hangs_;
  std::vector<char> moved_;  // whose type is another than the recorded one
  std::vector<char> fresh_;  // of what was there at first: memory that nothing was written to
  ir::Renaming to_;
};

}  // namespace

std::optional<WithoutAbsent> without_absent(const ir::Graph& backward, size_t saved, const std::vector<char>& given,
                                            bool own) {
  ir::Graph plain = backward;
  ir::make_functional(plain);
  std::optional<ir::Graph> left = Pruning(std::move(plain), saved, given, own).run();
  if (!left) return {};
  ir::remove_dead(*left);
  std::vector<char> used(left->values.size(), false);
  for (const ir::Node& n : left->body.nodes) ir::each_use(n, [&](Id v) { used[size_t(v)] = true; });
  for (const Id v : left->body.results)
    if (v != ir::kNone) used[size_t(v)] = true;
  WithoutAbsent made{std::move(*left), {}};
  std::vector<Id>& params = made.graph.body.params;
  for (size_t p = 0; p < saved; ++p) made.reads.push_back(used[size_t(params[p])]);
  size_t place = 0;
  std::erase_if(params, [&](Id) { return place++, place <= saved && !made.reads[place - 1]; });
  return made;
}

}  // namespace strata::jit
