#include "ir/pass/simplify.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/effect.h"
#include "ir/rewrite.h"
#include "ir/verify.h"

namespace strata::ir {

namespace {

struct Made {
  Operator* op = nullptr;  // null: a parameter, a constant
  std::vector<Arg> args;
};

// Whether each value of `narrow` is one of `wide`.
bool holds_all(DType wide, DType narrow) {
  if (wide == narrow) return true;
  auto digits = [](DType t) { return t == DType::F16 ? 11 : t == DType::BF16 ? 8 : t == DType::F32 ? 24 : 53; };
  const DKind w = traits(wide).kind, n = traits(narrow).kind;
  const int wide_bits = traits(wide).bits, narrow_bits = traits(narrow).bits;
  if (w == DKind::Complex || n == DKind::Complex || w == DKind::Bool) return false;
  if (n == DKind::Bool) return true;
  if (w == DKind::Float)
    return n == DKind::Float ? wide_bits > narrow_bits : narrow_bits <= digits(wide) && wide != DType::F16;
  if (n == DKind::Float || wide_bits <= narrow_bits) return false;
  return w == DKind::Signed || n == DKind::Unsigned;
}

class Simplify {
 public:
  explicit Simplify(Graph& g)
      : g_(g),
        memory_(g),
        to_(g),
        made_(g.values.size()),
        given_(g.values.size()),
        first_write_(g.values.size(), SIZE_MAX),
        last_read_(g.values.size()) {
    for (at_ = 0; at_ < g.body.nodes.size(); ++at_) {
      const Node& n = g.body.nodes[at_];
      each_use(n, [&](Id v) { last_read_[root(v)] = at_; });
      each_written(n, [&](Id v, const Node&) { first_write_[root(v)] = std::min(first_write_[root(v)], at_); });
    }
    for (Id v : g.body.results)
      if (v != kNone) last_read_[root(v)] = SIZE_MAX - 1;
    give(g.body);
  }

  void run() { block(g_.body, true); }

 private:
  size_t root(Id v) const { return size_t(memory_.of(v)); }
  const Type& type(Id v) const { return g_.values[size_t(v)].type; }

  void give(const Block& b) {
    for (Id v : b.results)
      if (v != kNone) given_[size_t(v)] = true;
    for (const Node& n : b.nodes)
      for (const Block& inner : n.blocks) give(inner);
  }

  void block(Block& b, bool outer) {
    std::vector<Node> kept;
    for (size_t i = 0; i < b.nodes.size(); ++i) {
      Node& n = b.nodes[i];
      if (outer) at_ = i;
      to_.apply(n);
      for (Block& inner : n.blocks) block(inner, false);
      if (n.kind == Node::Constant && n.constant.defined()) constant_of(n.results[0]) = n.args[0];
      if (n.kind == Node::Call && gone(n)) continue;
      if (n.kind == Node::Call)
        for (Id v : n.results)
          if (v != kNone) made_[size_t(v)] = {n.op, n.args};
      kept.push_back(std::move(n));
    }
    b.nodes = std::move(kept);
    to_.apply(b.results);
  }

  Arg& constant_of(Id v) {
    made_[size_t(v)].args.resize(1);
    return made_[size_t(v)].args[0];
  }

  // A number as an argument: a constant, or a value that a node holds.
  const Scalar* number(const Arg& a) const {
    const Arg* c = &a;
    if (a.kind == Arg::One && a.values[0] != kNone) {
      const Made& m = made_[size_t(a.values[0])];
      if (m.op || m.args.empty() || memory_.written(a.values[0])) return nullptr;
      c = &m.args[0];
    }
    return c->kind == Arg::Constant && c->constant.is<Scalar>() ? &c->constant.get<Scalar>() : nullptr;
  }
  bool is_number(const Node& n, std::string_view name, double v, int sign) const {
    const int i = n.op->schema().arg_index(name);
    const Scalar* s = i < 0 ? nullptr : number(n.args[size_t(i)]);
    if (!s || s->is_complex() || s->is_bool() || s->to_double() != v) return false;
    return sign == 0 || !s->is_float() || std::signbit(s->to_double()) == (sign < 0);
  }
  bool unscaled(const Node& n) const { return is_number(n, "alpha", 1, 0); }

  // The node that made a value, if that is a call of `op`.
  const Made* made_by(Id v, const Operator* op) const {
    return v != kNone && made_[size_t(v)].op == op && !memory_.written(v) ? &made_[size_t(v)] : nullptr;
  }
  static Id first(const std::vector<Arg>& args) {
    return !args.empty() && args[0].kind == Arg::One ? args[0].values[0] : kNone;
  }

  bool gone(Node& n) {
    if (n.results.size() != 1 || n.results[0] == kNone || !repeats(*n.op) || n.op->schema().ns != "aten") {
      return n.results.size() == 1 && n.results[0] != kNone && is_detach(n) && stand_for(n.results[0], first(n.args));
    }
    const Id x = first(n.args), r = n.results[0];
    if (x == kNone) return false;
    if (is_view(*n.op)) return view(n, x, r);
    const Id same = equal_to(n, x, r);
    return same != kNone && stand_alone_for(r, same);
  }
  // Another header, of all of its operand.
  static bool is_detach(const Node& n) {
    return is_header(*n.op) && n.args.size() == 1 && n.op->schema().returns.size() == 1 &&
           !n.op->schema().returns[0].type.alias.empty();
  }

  // What r = n(x) equals, or kNone.
  Id equal_to(const Node& n, Id x, Id r) const {
    const std::string& name = n.op->schema().name;
    const DType t = type(r).dtype;
    const bool real = !is_complex(t), integer = is_integral(t);
    if (name == "mul" && real && is_number(n, "other", 1, 0)) return x;
    if (name == "div" && n.args.size() == 2 && is_float(t) && is_number(n, "other", 1, 0)) return x;
    if (name == "sub" && real && unscaled(n) && is_number(n, "other", 0, 1)) return x;
    if (name == "add" && real && unscaled(n) && is_number(n, "other", 0, integer ? 0 : -1) &&
        (integer || is_minus_zero(n)))
      return x;
    if (name == "neg" || name == "bitwise_not" || (name == "logical_not" && t == DType::Bool))
      if (const Made* m = made_by(x, n.op)) return first(m->args);
    if (name == "abs" || name == "floor" || name == "ceil" || name == "trunc")
      if (made_by(x, n.op) && real) return x;
    if (name == "clone") return x;
    if (name == "_to_copy") {
      if (ir::same(type(r), type(x))) return x;
      if (const Made* m = made_by(x, n.op)) {
        const Id y = first(m->args);
        if (y != kNone && type(y).dtype == t && holds_all(type(x).dtype, t)) return y;
      }
    }
    return kNone;
  }
  bool is_minus_zero(const Node& n) const {
    const Scalar* s = number(n.args[1]);
    return s && s->is_float() && std::signbit(s->to_double());
  }

  bool view(Node& n, Id x, Id r) {
    for (Id from = x; from != kNone; from = first(made_[size_t(from)].args)) {
      if (stand_for(r, from)) return true;
      if (!made_[size_t(from)].op || !is_view(*made_[size_t(from)].op)) break;
    }
    // A view by sizes, of a view by sizes.
    const Made& m = made_[size_t(x)];
    if (m.op == n.op && n.op->name == "aten::view" && first(m.args) != kNone && !memory_.reshaped(x) &&
        contiguous(type(first(m.args))))
      n.args[0] = m.args[0];
    return false;
  }
  static bool contiguous(const Type& t) {
    int64_t step = 1;
    for (size_t d = t.sizes.size(); d-- > 0;) {
      if (t.strides[d].hint() != step || t.sizes[d].hint() == 0) return false;
      step *= t.sizes[d].hint();
    }
    return true;
  }

  // r is another header over x's memory, all of it: x itself will do, unless somebody is given the object.
  bool stand_for(Id r, Id x) {
    if (x == kNone || !ir::same(type(r), type(x)) || memory_.reshaped(r) || given_[size_t(r)]) return false;
    if (memory_.written(r) && memory_.returned(r)) return false;  // a write gives its operand back
    to_.replace(r, x);
    return true;
  }

  // Whether x begins memory of its own.
  bool whole(Id x) const {
    const Operator* op = made_[size_t(x)].op;
    return op && repeats(*op) && op->schema().returns[0].type.alias.empty() && !op->schema().returns[0].type.list;
  }

  // r is a tensor of its own with x's elements.
  bool stand_alone_for(Id r, Id x) {
    if (!ir::same(type(r), type(x)) || memory_.written(r) || memory_.reshaped(x)) return false;
    const size_t a = root(r), b = root(x);
    if (memory_.written(x) && (first_write_[b] <= at_ || first_write_[b] <= last_read_[a])) return false;
    if (memory_.returned(r) && (memory_.outside(x) || memory_.returned(x) || !whole(x))) return false;
    to_.replace(r, x);
    const size_t write = std::min(first_write_[a], first_write_[b]), read = std::max(last_read_[a], last_read_[b]);
    memory_.join(r, x);
    first_write_[root(x)] = write;
    last_read_[root(x)] = read;
    return true;
  }

  Graph& g_;
  Memory memory_;
  Renaming to_;
  std::vector<Made> made_;                       // of each value
  std::vector<bool> given_;                      // objects that a block gives
  std::vector<size_t> first_write_, last_read_;  // of each memory, as places among the body's nodes
  size_t at_ = 0;
};

}  // namespace

std::string simplify(Graph& graph) {
  Simplify(graph).run();
  return {};
}

}  // namespace strata::ir
