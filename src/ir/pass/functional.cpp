#include "ir/pass/functional.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "dispatch/info.h"
#include "ir/effect.h"
#include "ir/pass/inverse.h"
#include "ir/rewrite.h"
#include "ir/verify.h"

namespace strata::ir {

namespace {

// A value stands for a place in memory: all of a base, or a view of another value. A base has a current value, which is
// another after each write.
class Functional {
 public:
  explicit Functional(Graph& g) : g_(g), memory_(g), places_(g.values.size()) {}

  std::string run() {
    for (Id v : g_.body.params) root(v);
    std::vector<Node> nodes = std::move(g_.body.nodes);
    g_.body.nodes.clear();
    size_t i = 0;
    for (; i < nodes.size(); ++i) {
      why_.clear();
      if (!node(nodes[i])) break;
    }
    if (i == nodes.size()) {
      real(g_.body.results);
      put_back();
      return {};
    }
    const Node& last = nodes[i];
    std::string note = str_cat("stopped at node ", i, ", ", last.kind == Node::Call ? last.op->name : "a block",
                               last.span.empty() ? "" : " (" + last.span + ")", ": ", why_);
    // The rest reads and writes the places themselves.
    put_back();
    const size_t from = g_.body.nodes.size();
    for (; i < nodes.size(); ++i) {
      real_uses(nodes[i]);
      for (Id v : nodes[i].results)
        if (v != kNone) places_[size_t(v)].kind = Place::Plain;
      g_.body.nodes.push_back(std::move(nodes[i]));
    }
    real(g_.body.results);
    // Views that the rest needs come before it, since it may change the header that they are made of.
    std::vector<Node> first, rest;
    for (size_t k = from; k < g_.body.nodes.size(); ++k) {
      Node& n = g_.body.nodes[k];
      (!n.results.empty() && remade_.contains(n.results[0]) ? first : rest).push_back(std::move(n));
    }
    g_.body.nodes.resize(from);
    for (std::vector<Node>* part : {&first, &rest})
      for (Node& n : *part) g_.body.nodes.push_back(std::move(n));
    return note;
  }

 private:
  struct Place {
    enum Kind : uint8_t { Plain, Root, View } kind = Plain;  // Plain: the value itself, always
    Id of = kNone;           // of a root: its current value; of a view: what it is a view of
    Id same = kNone;         // another name of that value
    size_t version = 0;      // of a root: writes so far; of a view: when `now` was made
    Id now = kNone;          // of a view: its value then
    bool true_view = false;  // `now` lies in the current value's memory
    bool strided = false;    // a root that a view of absolute places was made of
    size_t call = 0;         // of a view: its call
  };

  const Type& type(Id v) const { return g_.values[size_t(v)].type; }
  Place& place(Id v) {
    if (size_t(v) >= places_.size()) places_.resize(g_.values.size());
    return places_[size_t(v)];
  }
  void root(Id v) {
    if (v == kNone || type(v).kind != Type::Tensor) return;
    Place& p = place(v);
    p.kind = Place::Root;
    p.of = v;
  }
  Id name_of(Id v) {
    while (place(v).same != kNone) v = place(v).same;
    return v;
  }
  Id root_of(Id v) {
    v = name_of(v);
    while (place(v).kind == Place::View) v = name_of(place(v).of);
    return v;
  }
  bool stop(std::string why) {
    why_ = std::move(why);
    return false;
  }

  Id emit(Node n, const Type& t) {
    const Id v = g_.add(t);
    n.results = {v};
    g_.body.nodes.push_back(std::move(n));
    return v;
  }

  // ---- reading
  Id read(Id v, bool truly = false) {
    if (v == kNone) return v;
    v = name_of(v);
    if (place(v).kind == Place::Plain) return v;
    if (place(v).kind == Place::Root) return place(v).of;
    const size_t version = place(root_of(v)).version;
    if (place(v).version == version && (place(v).true_view || !truly)) return place(v).now;
    const Id of = read(place(v).of, truly);
    Node again = calls_[place(v).call];
    again.args[0] = Arg::one(of);
    const Id parent = name_of(place(v).of);
    const bool lies = place(parent).kind != Place::View || place(parent).true_view;
    for (Id& r : again.results)
      if (r != kNone) {
        const Id made = g_.add(Type(type(r)));
        place(made);
        Place& p = place(r);
        // Others of several results keep what they have, if that is good.
        if (r == v || p.version != version || (truly && !p.true_view))
          p.now = made, p.version = version, p.true_view = lies;
        r = made;
      }
    remade_.insert(again.results[0]);
    g_.body.nodes.push_back(std::move(again));
    return place(v).now;
  }
  void reads(Node& n) {
    for (Arg& a : n.args)
      for (Id& v : a.values) v = read(v);
    for (Block& b : n.blocks) reads(b);
  }
  void reads(Block& b) {
    for (Node& n : b.nodes) reads(n);
    for (Id& v : b.results) v = read(v);
  }
  void real(std::vector<Id>& ids) {
    for (Id& v : ids) v = real_value(v);
  }
  // The tensor in the place itself; of an input that was written, the input.
  Id real_value(Id v) {
    if (v == kNone) return v;
    const Id r = root_of(v);
    Place& p = place(r);
    if (p.kind == Place::Root && p.of != r && is_param(r)) {
      written_.emplace_back(r, p.of);
      p.of = r;
      ++p.version;
    }
    return read(v, true);
  }
  void real_uses(Node& n) {
    for (Arg& a : n.args) real(a.values);
    for (Block& b : n.blocks) {
      for (Node& inner : b.nodes) real_uses(inner);
      real(b.results);
    }
  }
  bool is_param(Id v) const { return std::ranges::find(g_.body.params, v) != g_.body.params.end(); }

  void put_back() {
    for (Id v : g_.body.params) real_value(v);
    static Operator& copy = OperatorTable::instance().get("aten::copy_");
    for (auto [to, from] : written_) {
      Node n;
      n.op = &copy;
      n.args = {Arg::one(to), Arg::one(from), {Arg::Constant, IValue(false), {}}};
      n.span = spans_[to];
      emit(std::move(n), type(to));
    }
    written_.clear();
  }

  // ---- nodes
  bool node(Node& n) {
    if (n.kind == Node::Constant) {
      g_.body.nodes.push_back(std::move(n));
      return true;
    }
    if (n.kind != Node::Call) return block_node(n);
    if (n.op->schema().writes()) return write(n);
    const std::optional<OpInfo> i = info(*n.op);
    if (i && (i->kind == "view" || i->kind == "header")) return view(n);
    if (sharing(*n.op) == Sharing::Unknown)
      return stop("its results may share memory with its operands, and the table does not say how");
    for (const Argument& r : n.op->schema().returns) {
      if (!r.type.alias.empty()) return stop("its results share memory with its operands, and it is no view");
      if (r.type.list && std::ranges::any_of(n.results, [&](Id v) { return v != kNone && memory_.written(v); }))
        return stop("its results, of which one is written, may lie in one memory");
    }
    reads(n);
    for (Id v : n.results) root(v);
    g_.body.nodes.push_back(std::move(n));
    return true;
  }

  bool block_node(Node& n) {
    bool writes = false;
    each_written(n, [&](Id, const Node&) { writes = true; });
    for (Id v : n.results)
      if (v != kNone && type(v).kind == Type::Tensor) writes |= memory_.written(v);
    if (writes) return stop("what its blocks write, or give, is written");
    reads(n);
    g_.body.nodes.push_back(std::move(n));
    return true;  // results are plain: nobody writes them
  }

  bool view(Node& n) {
    if (n.args.empty() || n.args[0].kind != Arg::One || n.args[0].values[0] == kNone)
      return stop("it is a view of nothing");
    const Id base = name_of(n.args[0].values[0]), r = root_of(base);
    if (n.op->schema().arg_index("storage_offset") >= 0) {
      if (place(r).version) return stop("its places are those of memory that was written before");
      place(r).strided = true;
    }
    calls_.push_back(n);
    calls_.back().args[0] = Arg::one(kNone);
    for (Id v : n.results) {
      if (v == kNone) continue;
      Place& p = place(v);
      p.kind = Place::View;
      p.of = base;
      p.now = v;
      p.version = place(r).version;
      p.call = calls_.size() - 1;
    }
    n.args[0].values[0] = read(base);
    const bool truly = place(base).kind != Place::View || place(base).true_view;
    for (Id v : n.results)
      if (v != kNone) place(v).true_view = truly;
    g_.body.nodes.push_back(std::move(n));
    return true;
  }

  // ---- writing
  bool write(Node& n) {
    const Schema& schema = n.op->schema();
    std::vector<Id> targets;  // in the order of the arguments, lists taken apart, as the twin's results are
    bool out = false;
    for (size_t i = 0; i < n.args.size(); ++i)
      if (schema.args[i].type.written) {
        if (n.args[i].kind == Arg::Constant || std::ranges::find(n.args[i].values, kNone) != n.args[i].values.end())
          return stop("it writes nothing");
        targets.insert(targets.end(), n.args[i].values.begin(), n.args[i].values.end());
        out |= schema.args[i].keyword_only;
      }
    if (targets.size() > 1 && !apart(n)) return false;
    Node made = functional_form(n);
    if (!made.op) return stop("no operator computes the same without writing");
    if (made.op->schema().writes() || sharing(*made.op) == Sharing::Unknown || has_aliases(made.op->schema()))
      return stop(str_cat("its functional form, ", made.op->name, ", shares memory or writes"));
    for (size_t k = 0; k < n.results.size(); ++k)
      if (n.results[k] != kNone && (k >= targets.size() || !same(type(n.results[k]), type(targets[k]))))
        return stop("it gives something else than its operand, or changes its header");
    reads(made);
    const std::optional<std::vector<Type>> types = types_of_call(g_, made);
    if (!types || types->size() != targets.size())
      return stop(str_cat("its functional form, ", made.op->name, ", gives something else"));
    for (size_t k = 0; k < targets.size(); ++k) {
      const bool exact = same((*types)[k], type(targets[k]));
      if (out && !exact) return stop("out= is of another dtype or geometry than what is computed");
      if (targets.size() > 1 && !exact) return stop("it writes several tensors, of which one is of another type");
    }
    for (const Type& t : *types) {
      made.results.push_back(g_.add(t));
      place(made.results.back());
    }
    const std::vector<Id> values = made.results;
    const size_t at = g_.body.nodes.size();
    g_.body.nodes.push_back(std::move(made));
    for (size_t k = 0; k < targets.size(); ++k)
      if (!assign(targets[k], values[k], n.span)) {
        undo(at);
        return false;
      }
    // It gives its operands back.
    for (size_t k = 0; k < n.results.size(); ++k)
      if (n.results[k] != kNone) place(n.results[k]).same = targets[k];
    return true;
  }

  // Whether the tensors that n writes can all be assigned: one after the other in place, they see what was written to
  // the ones before, and a value does not.
  bool apart(const Node& n) {
    std::unordered_set<Id> written;
    for (size_t i = 0; i < n.args.size(); ++i) {
      if (!n.op->schema().args[i].type.written) continue;
      for (Id v : n.args[i].values) {
        v = name_of(v);
        if (place(v).kind == Place::View) return stop("it writes several tensors, of which one is a view");
        if (!assignable(v)) return false;
        if (!written.insert(v).second) return stop("it writes several tensors, of which two are one");
      }
    }
    for (size_t i = 0; i < n.args.size(); ++i)
      for (Id v : n.args[i].values)
        if (v != kNone && !n.op->schema().args[i].type.written && written.contains(root_of(v)))
          return stop("it writes several tensors, and reads one of them");
    return true;
  }

  // Takes the call at `at` back, and what reads it; views that were made meanwhile stay.
  void undo(size_t at) {
    std::vector<Node>& nodes = g_.body.nodes;
    std::unordered_set<Id> gone(nodes[at].results.begin(), nodes[at].results.end());
    std::vector<Node> kept(std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.begin() + long(at)));
    for (size_t i = at + 1; i < nodes.size(); ++i) {
      bool reads_gone = false;
      each_use(nodes[i], [&](Id v) { reads_gone |= gone.contains(v); });
      if (reads_gone)
        gone.insert(nodes[i].results.begin(), nodes[i].results.end());
      else
        kept.push_back(std::move(nodes[i]));
    }
    nodes = std::move(kept);
  }

  static bool has_aliases(const Schema& schema) {
    return std::ranges::any_of(schema.returns, [](const Argument& r) { return !r.type.alias.empty(); });
  }

  // The call that computes what n writes, over n's own operands. Without an operator where there is none.
  Node functional_form(const Node& n) {
    Node made;
    made.span = n.span;
    made.gradient = n.gradient;
    OperatorTable& table = OperatorTable::instance();
    auto take = [&](std::string_view name, auto&& argument) {
      made.op = table.find(name);
      for (const Argument& a : made.op->schema().args) made.args.push_back(argument(a));
    };
    const auto none = [] { return Arg{Arg::Constant, {}, {}}; };
    if (n.op->name == "aten::copy_") {
      // src in self's dtype and sizes.
      const Type t = type(n.args[0].values[0]);  // values may move
      Id src = n.args[1].kind == Arg::One ? read(n.args[1].values[0]) : kNone;
      if (src == kNone || type(src).device != t.device) return made;
      if (type(src).number || !same_sizes(type(src), t)) {
        Node wide;
        wide.op = table.find("aten::expand");
        wide.args = {Arg::one(src), {Arg::Constant, IValue(numbers(t.sizes)), {}}, {Arg::Constant, IValue(false), {}}};
        wide.span = n.span;
        std::optional<std::vector<Type>> types = types_of_call(g_, wide);
        if (!types) return made;
        src = emit(std::move(wide), (*types)[0]);
        place(src);
      }
      const bool dense = same_sizes(type(src), t) && same(with_dtype(type(src), t.dtype), t);
      take("aten::_to_copy", [&](const Argument& a) {
        if (a.type.is_tensor()) return Arg::one(src);
        if (a.name == "dtype") return Arg{Arg::Constant, IValue(t.dtype), {}};
        if (a.name == "non_blocking") return Arg{Arg::Constant, IValue(false), {}};
        if (a.name == "memory_format" && !dense) return Arg{Arg::Constant, IValue(MemoryFormat::Contiguous), {}};
        return none();
      });
      return made;
    }
    if (n.op->name == "aten::zero_") {
      take("aten::fill.Scalar", [&](const Argument& a) {
        return a.type.is_tensor() ? n.args[0] : Arg{Arg::Constant, IValue(Scalar(0)), {}};
      });
      return made;
    }
    Operator* twin = functional_twin(*n.op);
    if (!twin) return made;
    const Schema& schema = n.op->schema();
    for (const Argument& a : twin->schema().args) {
      const int i = schema.arg_index(a.name);
      if (i < 0 && !a.default_value) return made;
      made.args.push_back(i >= 0 ? n.args[size_t(i)] : Arg{Arg::Constant, *a.default_value, {}});
    }
    made.op = twin;
    return made;
  }

  static Type with_dtype(Type t, DType dtype) {
    t.dtype = dtype;
    t.number = false;
    return t;
  }
  static bool same_sizes(const Type& a, const Type& b) { return numbers(a.sizes) == numbers(b.sizes); }
  // Brings a value to a type with the same elements: its dtype, and where that does, its strides.
  bool conform(Id& v, const Type& t, const std::string& span) {
    if (same(type(v), t)) return true;
    if (type(v).number || !same_sizes(type(v), t) || type(v).device != t.device)
      return stop(str_cat("it makes ", to_string(type(v)), " of ", to_string(t)));
    for (const IValue& format : {IValue(), IValue(MemoryFormat::Contiguous)}) {
      Node cast;
      cast.op = &OperatorTable::instance().get("aten::_to_copy");
      cast.span = span;
      for (const Argument& a : cast.op->schema().args)
        cast.args.push_back(a.type.is_tensor()          ? Arg::one(v)
                            : a.name == "dtype"         ? Arg{Arg::Constant, IValue(t.dtype), {}}
                            : a.name == "non_blocking"  ? Arg{Arg::Constant, IValue(false), {}}
                            : a.name == "memory_format" ? Arg{Arg::Constant, format, {}}
                                                        : Arg{Arg::Constant, {}, {}});
      std::optional<std::vector<Type>> types = types_of_call(g_, cast);
      if (!types || !same((*types)[0], t)) continue;
      v = emit(std::move(cast), t);
      place(v);
      return true;
    }
    return stop(str_cat("what it makes lies otherwise in memory: ", to_string(type(v)), " for ", to_string(t)));
  }

  bool assignable(Id target) {
    const Id r = root_of(target);
    if (place(r).kind != Place::Root) return stop("what it writes is a constant, or given by a block");
    if (place(r).strided) return stop("there is a view by places in memory (as_strided) of what it writes");
    if (shared_capture(r)) return stop("it writes a captured tensor that shares memory with another one");
    return true;
  }

  // The place of `target` holds `value` from now on.
  bool assign(Id target, Id value, const std::string& span) {
    target = name_of(target);
    if (!assignable(target)) return false;
    const Id r = root_of(target);
    if (!conform(value, type(target), span)) return false;
    const Id whole = value;
    for (Id v = target; place(v).kind == Place::View; v = name_of(place(v).of)) {
      const Id base = name_of(place(v).of);
      if (!invert(v, base, value, span)) return false;
    }
    Place& p = place(r);
    p.of = value;
    ++p.version;
    if (is_param(r)) spans_[r] = span;
    Place& t = place(target);
    if (t.kind == Place::View) t.now = whole, t.version = p.version, t.true_view = false;
    return true;
  }
  bool shared_capture(Id r) const {
    const auto at = std::ranges::find(g_.body.params, r) - g_.body.params.begin();
    const size_t k = size_t(at) - g_.inputs();
    if (size_t(at) < g_.inputs() || k >= g_.captured.size()) return false;
    for (size_t i = 0; i < g_.captured.size(); ++i)
      if (i != k && g_.captured[i].impl()->storage_.get() == g_.captured[k].impl()->storage_.get()) return true;
    return false;
  }

  // `value`, of view v, put into a copy of its base: makes it a value of the base.
  bool invert(Id v, Id base, Id& value, const std::string& span) {
    const Node call = calls_[place(v).call];
    const std::optional<OpInfo> i = info(*call.op);
    const Type whole = type(base);
    auto no = [&] { return stop(str_cat("a view of it, by ", call.op->name, ", cannot be put back")); };
    const bool header = i->kind == "header";
    if ((header || is_view(*call.op)) && same(type(value), whole)) return true;  // all of it
    const std::string name = header ? "view" : std::string(i->inverse);
    // These add up what overlaps.
    if (name.empty() || name == "sum_to_size" || name == "unfold_backward") return no();
    if (call.op->schema().returns.size() != 1) return no();
    Node n;
    if (call.op->schema().returns[0].type.list) {
      std::vector<Id> parts;
      for (Id r : call.results) parts.push_back(r == v ? value : read(r));
      n.op = OperatorTable::instance().find("aten::" + name);
      const int dim = call.op->schema().arg_index("dim");
      if (!n.op || dim < 0 || n.op->schema().args.size() != 2) return no();
      n.args = {Arg::list(parts), call.args[size_t(dim)]};
    } else {
      n = inverse_call(name, call, type(base), value);
      if (!n.op) return no();
      if (n.args[0].values[0] == kNone) n.args[0].values[0] = read(base);
    }
    n.span = span;
    std::optional<std::vector<Type>> types = types_of_call(g_, n);
    if (!types || types->size() != 1) return no();
    value = emit(std::move(n), (*types)[0]);
    place(value);
    return conform(value, whole, span);
  }

  Graph& g_;
  const Memory memory_;
  std::deque<Place> places_;                   // of each value; references stay
  std::vector<Node> calls_;                    // of views
  std::vector<std::pair<Id, Id>> written_;     // parameters, and what is to be copied into them
  std::unordered_map<Id, std::string> spans_;  // of their last writes
  std::unordered_set<Id> remade_;
  std::string why_;
};

}  // namespace

std::string make_functional(Graph& graph) { return Functional(graph).run(); }

}  // namespace strata::ir
