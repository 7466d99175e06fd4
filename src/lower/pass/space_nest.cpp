#include "lower/pass/space_nest.h"

#include <algorithm>
#include <bit>
#include <map>

#include "lower/expr/build.h"
#include "lower/pass/carry_text.h"
#include "lower/pass/contraction.h"
#include "lower/pass/live.h"
#include "lower/pass/space_text.h"

namespace strata::lower {
namespace {

class SpaceNest : Builder::Operands {
 public:
  SpaceNest(const KernelDesc& desc, DType dtype, SpaceForm form)
      : desc_(desc),
        form_(form),
        builder_(desc, dtype),
        outputs_(patterns_named(desc.outputs)),
        inputs_(patterns_named(desc.inputs)) {
    nest_.name = space_name(desc.name, form);
    nest_.source = desc.source ? desc.source : "";
    nest_.text = desc.text;
    nest_.dtype = dtype;
    scatters_ = into_of(desc) != NestStore::None;
    // An operand that a scatter reads at places of its own says of no dim but the plain group that it is run over.
    std::vector<const SpacePattern*> walked, others;
    for (const SpacePattern& p : scatters_ ? inputs_ : outputs_)
      (scatters_ && is_placed(desc, p.name) ? others : walked).push_back(&p);
    for (const SpacePattern& p : scatters_ ? outputs_ : inputs_) others.push_back(&p);
    for (const SpacePattern* p : walked)
      for (const SpaceDim& d : p->dims) add_dim(d, true);
    for (const SpacePattern* p : others)
      for (const SpaceDim& d : p->dims) add_dim(d, scatters_ && d.name == kPlain);
    for (const SpaceDim& d : dims_named(desc.over)) {
      if (ranges_.count(d.name) && (scatters_ || iterated_[d.name]))
        builder_.fail(nullptr, "reduced dim '" + d.name + "' is one of " + (scatters_ ? "an operand" : "an output"));
      add_dim(d, scatters_);
      iterated_[d.name] = true;
      for (int r : ranges_[d.name])
        if (!scatters_) over_ |= uint64_t(1) << r;
    }
    for (const SpacePattern& p : patterns_named(desc.scalars))
      if (!p.dims.empty()) lists_.push_back(p.name);
    // The plain group's outer range is the first of all, its inner one the last that is run over.
    if (ranges_.count(kPlain)) {
      std::vector<int>& plain = ranges_[kPlain];
      plain = {new_range({"outer", NestRange::Plain, kPlain, 0}, true)};
      if (form.inner) plain.push_back(new_range({"inner", NestRange::Plain, kPlain, 1}, true));
    }
  }

  Nest run() {
    builder_.operands = this;
    carries_.range_of = [this](const Expr& name) {
      if (!ranges_.count(name.name) || is_group(name.name) || !iterated_[name.name])
        builder_.fail(&name, "'" + name.name + "' is no dim of an output");
      return ranges_.at(name.name)[0];
    };
    builder_.g.portable = true;
    const std::vector<std::array<int, 2>> values = builder_.build();
    for (Carry& c : builder_.g.carries)
      if (c.kind == Carry::Repeat) c.range = new_range({Nest::kTurns + std::to_string(nest_.ranges.size())}, false);
    const Kernel& k = builder_.kernel();
    for (size_t i = 0; i < outputs_.size(); ++i) add_operand(outputs_[i], k.outputs[i].storage, true);
    if (form_.chained) {
      nest_.operands.push_back({Nest::kTotal, nest_.operands[0].storage, true, {}});
      nest_.operands.push_back({Nest::kCount, DType::U32, true, {}});
    }
    for (size_t i = 0; i < inputs_.size(); ++i) add_operand(inputs_[i], k.inputs[i].storage, false);
    scalars(k);
    if (scatters_) scatter(values[0]);
    for (size_t i = 0; i < outputs_.size() && !scatters_; ++i)
      for (uint8_t part = 0; part < 2; ++part)
        if (values[i][part] >= 0)
          nest_.stores.push_back({int(i), offset(int(i), own_place(outputs_[i])), values[i][part], part});
    keep_live(builder_.g, nest_);
    order_ranges();
    find_dependences(nest_);
    verify(nest_);
    return std::move(nest_);
  }

  // A dim, an operand at its own dims, a list's element, or an operand at a place.
  bool value(Builder& b, const Expr& e, Value& out) override {
    if (carries_.value(b, e, out)) return true;
    if (e.kind == Expr::Call && e.name == "extent") {
      if (e.args.size() != 1 || e.args[0]->kind != Expr::Name || !ranges_.count(e.args[0]->name))
        b.fail(&e, "extent takes the name of a dim");
      out = Builder::real(leaf(Op::Extent, range_of(b, *e.args[0])));
      return true;
    }
    if (Combine c; e.kind == Expr::Call && over_ && !e.args.empty() && combine_of(e.name, c)) {
      out = reduction(b, e, c);
      return true;
    }
    if (e.kind == Expr::Call && e.name == "sum_products") {
      out = sum_products(b, e, over_);
      return true;
    }
    if (e.kind == Expr::Call && e.name == "inside") {
      const bool partial = e.args.size() == 1 && absent_;
      if ((!partial && e.args.size() != 2) || e.args[0]->kind != Expr::Index)
        b.fail(&e, "inside takes operand[...] and a value; without the value it is inside of a reduction");
      if (partial) {
        int guard = -1;
        out = read(b, *e.args[0], &guard);
        if (guard >= 0) *absent_ = *absent_ < 0 ? guard : b.g.op(Op::And, DType::Bool, *absent_, guard);
        return true;
      }
      const Value fill = b.eval(*e.args[1]);
      int guard = -1;
      const Value v = read(b, *e.args[0], &guard);
      out = guard < 0 ? v : b.select(guard, v, fill);
      return true;
    }
    if (e.kind == Expr::Call && (e.name == "place" || e.name == "product")) {
      out = over_dims(b, e);
      return true;
    }
    if (into_of(e) != NestStore::None) {
      out = contribution(b, e);
      return true;
    }
    if (e.kind == Expr::Index) {
      out = read(b, e, nullptr);
      return true;
    }
    if (e.kind != Expr::Name) return false;
    if (ranges_.count(e.name)) {
      if (!iterated_[e.name]) b.fail(&e, "dim '" + e.name + "' is of no output: it has a size, extent(), but no index");
      out = Builder::real(leaf(Op::Range, range_of(b, e)));
      return true;
    }
    if (std::find(lists_.begin(), lists_.end(), e.name) != lists_.end()) {
      if (component_ < 0) b.fail(&e, "list '" + e.name + "' has a value only at the place of a group");
      out = Builder::real(list_element(e.name, component_));
      return true;
    }
    for (size_t k = 0; k < inputs_.size(); ++k)
      if (inputs_[k].name == e.name) {
        out = load(b, k, own_place(inputs_[k]), -1);
        return true;
      }
    return false;
  }

 private:
  // sum(e), argmax(e, place); of inside(x[...]) elements that are outside are absent.
  Value reduction(Builder& b, const Expr& e, Combine c) {
    const bool arg = c == Combine::ArgMax || c == Combine::ArgMin;
    if (e.args.size() != (arg ? 2 : 1))
      b.fail(&e, e.name + (arg ? " takes a value and its place" : " takes one value"));
    Reduction how{c, DType::F32};
    how.over = over_;
    how.sequence = desc_.sequence;
    const Expr& of = *e.args[0];
    const bool partial =
        of.kind == Expr::Call && of.name == "inside" && of.args.size() == 1 && of.args[0]->kind == Expr::Index;
    const Value v = partial ? read(b, *of.args[0], &how.guard) : b.eval(of);
    if (arg) how.value[1] = b.cast(b.eval(*e.args[1]), DType::I64).re;
    if (arg && partial && e.args[1]->kind == Expr::Call && e.args[1]->name == "place")
      how.below = known_below(b, *e.args[1], how.guard);
    return b.reduce(e, c, v, how);
  }

  // The dims of place(g, index), a bit each, if the guard holds only where the index is inside of them; else 0.
  uint64_t known_below(Builder& b, const Expr& e, int guard) {
    const int outer = component_;
    uint64_t dims = 0;
    for (size_t c = 0; c < ranges_.at(e.args[0]->name).size(); ++c) {
      const int range = ranges_.at(e.args[0]->name)[c];
      component_ = int(c);
      const int v = b.cast(b.eval(*e.args[1]), DType::I64).re, inside = fits(b.g, v, range);
      if (b.g.implies(guard, inside)) dims |= uint64_t(1) << range;
    }
    component_ = outer;
    return size_t(std::popcount(dims)) == ranges_.at(e.args[0]->name).size() ? dims : 0;
  }

  int fits(Graph& g, int v, int range) {
    const int size = leaf(Op::Extent, range), zero = g.integer(DType::I64, 0);
    return g.op(Op::And, DType::Bool, g.compare(Op::Ge, v, zero), g.compare(Op::Lt, v, size));
  }

  // sum_into(result[...], e, condition): the value; where it goes is kept.
  Value contribution(Builder& b, const Expr& e) {
    const bool partial =
        !e.args.empty() && e.args[0]->kind == Expr::Call && e.args[0]->name == "inside" && e.args[0]->args.size() == 1;
    if (e.args.size() < 2 || e.args.size() > 3) b.fail(&e, e.name + " takes result[...], a value and a condition");
    const Expr& target = partial ? *e.args[0]->args[0] : *e.args[0];
    if (store_.into != NestStore::None || outputs_.size() != 1 || target.kind != Expr::Index ||
        target.name != outputs_[0].name)
      b.fail(&e, e.name + " is the last line and takes a place of the only output");
    const Value v = b.eval(*e.args[1]);
    store_.into = into_of(e);
    place_ = place_at(b, outputs_[0], target, partial, store_.guard);
    if (e.args.size() == 3) {
      const int also = b.condition(b.eval(*e.args[2]));
      store_.guard = store_.guard < 0 ? also : b.g.op(Op::And, DType::Bool, store_.guard, also);
    }
    return v;
  }

  void scatter(const std::array<int, 2>& value) {
    Graph& g = builder_.g;
    store_.operand = 0;
    store_.value = value[0];
    store_.imaginary = value[1];
    store_.offset = offset(0, place_);
    for (size_t k = 0; k < nest_.ranges.size(); ++k) {
      bool apart = false;
      for (size_t d = 0; d < place_.size(); ++d)
        apart |= nest_.operands[0].dims[d] == int(k) && g.node(place_[d]).op == Op::Range &&
                 g.node(place_[d]).imm == uint64_t(k);
      nest_.ranges[k].ordered = runs_[k] && !apart;
    }
    store_.chains = form_.chained;
    nest_.stores.push_back(store_);
  }

  // Of an expression with a value for each dim of a group: place(g, e) is the row-major number of the place, product(g,
  // e) the product.
  Value over_dims(Builder& b, const Expr& e) {
    if (e.args.size() != 2 || e.args[0]->kind != Expr::Name || !is_group(e.args[0]->name) || e.args[0]->name == kPlain)
      b.fail(&e, e.name + " takes the name of a group and an expression of its dims");
    const std::vector<int>& dims = ranges_.at(e.args[0]->name);
    const int outer = component_;
    int out = -1;
    for (size_t c = 0; c < dims.size(); ++c) {
      component_ = int(c);
      const int v = b.cast(b.eval(*e.args[1]), DType::I64).re;
      if (out < 0)
        out = v;
      else if (e.name == "product")
        out = b.g.bin(Op::Mul, out, v);
      else
        out = b.g.bin(Op::Add, b.g.bin(Op::Mul, out, leaf(Op::Extent, dims[c])), v);
    }
    component_ = outer;
    return Builder::real(out);
  }

  // ---- ranges

  int new_range(NestRange range, bool iterated) {
    nest_.ranges.push_back(std::move(range));
    runs_.push_back(iterated);
    return int(nest_.ranges.size()) - 1;
  }

  void add_dim(const SpaceDim& d, bool iterated) {
    if (ranges_.count(d.name)) return;
    std::vector<int>& r = ranges_[d.name];
    iterated_[d.name] = iterated;
    if (!d.group)
      r = {new_range({.name = d.name, .fixed = d.fixed}, iterated)};
    else if (d.name != kPlain)
      for (int c = 0; c < form_.rank; ++c)
        r.push_back(new_range({d.name + std::to_string(c), NestRange::Group, d.name, uint8_t(c)}, iterated));
  }

  int range_of(Builder& b, const Expr& name) const {
    const std::vector<int>& r = ranges_.at(name.name);
    if (name.name == kPlain) b.fail(&name, "the plain group has no index of its own: it stands at its place alone");
    if (!is_group(name.name)) return r[0];
    if (component_ < 0) b.fail(&name, "group '" + name.name + "' has an index only at the place of a group");
    return r[size_t(component_)];
  }

  bool is_group(const std::string& name) const {
    for (const SpaceDim& d : dims_named(desc_.over))
      if (d.name == name) return d.group;
    for (const std::vector<SpacePattern>* list : {&outputs_, &inputs_})
      for (const SpacePattern& p : *list)
        for (const SpaceDim& d : p.dims)
          if (d.name == name) return d.group;
    return false;
  }

  int leaf(Op op, int range) { return builder_.g.add({op, DType::I64, {-1, -1, -1}, uint64_t(range)}); }

  // Loops in this order: the outer plain range, the outputs' own, the inner plain one; then what only has a size, and
  // what reductions run over.
  void order_ranges() {
    std::vector<int> order;
    const bool plain = ranges_.count(kPlain);
    if (plain) order.push_back(ranges_[kPlain][0]);
    for (int k = 0; k < int(nest_.ranges.size()); ++k)
      if (runs_[k] && (!plain || std::find(ranges_[kPlain].begin(), ranges_[kPlain].end(), k) == ranges_[kPlain].end()))
        order.push_back(k);
    if (plain && form_.inner) order.push_back(ranges_[kPlain][1]);
    for (int k = 0; k < int(nest_.ranges.size()); ++k)
      if (!runs_[k] && !(over_ >> k & 1)) order.push_back(k);
    if (over_)
      for (const SpaceDim& d : dims_named(desc_.over))
        order.insert(order.end(), ranges_[d.name].begin(), ranges_[d.name].end());
    std::vector<int> place(order.size());
    std::vector<NestRange> ranges;
    for (size_t k = 0; k < order.size(); ++k) {
      place[size_t(order[k])] = int(k);
      ranges.push_back(nest_.ranges[size_t(order[k])]);
    }
    nest_.ranges = std::move(ranges);
    for (NestOperand& o : nest_.operands)
      for (int& d : o.dims) d = place[size_t(d)];
    for (Node& n : nest_.nodes)
      if (n.op == Op::Range || n.op == Op::Extent) n.imm = uint64_t(place[n.imm]);
    for (Carry& c : nest_.carries) {
      c.range = place[size_t(c.range)];
      nest_.ranges[size_t(c.range)].whole = c.kind != Carry::Repeat;
    }
    for (Reduction& r : nest_.reductions) {
      uint64_t over = 0, below = 0;
      for (size_t k = 0; k < place.size(); ++k) {
        over |= (r.over >> k & 1) << place[k];
        below |= (r.below >> k & 1) << place[k];
      }
      r.over = over;
      r.below = below;
    }
  }

  // ---- operands

  std::vector<int> dims_of(const SpacePattern& p) const {
    std::vector<int> dims;
    for (const SpaceDim& d : p.dims) {
      const std::vector<int>& r = ranges_.at(d.name);
      dims.insert(dims.end(), r.begin(), r.end());
    }
    return dims;
  }

  void add_operand(const SpacePattern& p, DType storage, bool output) {
    nest_.operands.push_back({p.name, storage, output, dims_of(p)});
  }

  std::vector<int> own_place(const SpacePattern& p) {
    std::vector<int> place;
    for (int r : dims_of(p)) place.push_back(leaf(Op::Range, r));
    return place;
  }

  int offset(int operand, const std::vector<int>& place) {
    Graph& g = builder_.g;
    int sum = -1;
    for (size_t d = 0; d < place.size(); ++d) {
      const int stride = g.add({Op::Stride, DType::I64, {-1, -1, -1}, uint64_t(operand), uint8_t(d)});
      const int term = g.bin(Op::Mul, place[d], stride);
      sum = sum < 0 ? term : g.bin(Op::Add, sum, term);
    }
    return sum < 0 ? g.integer(DType::I64, 0) : sum;
  }

  Value load(Builder& b, size_t input, const std::vector<int>& place, int guard) {
    Graph& g = b.g;
    const DType storage = b.kernel().inputs[input].storage;
    const int operand = int(outputs_.size() + input) + (form_.chained ? 2 : 0), at = offset(operand, place);
    auto part = [&](uint8_t p) {
      const int v = g.add({Op::At, storage_node_type(storage), {at, guard, -1}, uint64_t(operand), p});
      return from_storage(g, v, storage);
    };
    return is_complex(storage) ? Builder::pair(part(0), part(1)) : Builder::real(part(0));
  }

  // operand[...]: where `inside` is given, it becomes the condition that all indices are, and the read is guarded by
  // it.
  Value read(Builder& b, const Expr& e, int* inside) {
    size_t input = 0;
    while (input < inputs_.size() && inputs_[input].name != e.name) ++input;
    if (input == inputs_.size()) b.fail(&e, "'" + e.name + "' is no tensor operand");
    int guard = -1;
    const std::vector<int> place = place_at(b, inputs_[input], e, inside != nullptr, guard);
    if (inside) *inside = guard;
    return load(b, input, place, guard);
  }

  // The indices of operand[...], and the condition (-1: none) that those which may be outside are not.
  std::vector<int> place_at(Builder& b, const SpacePattern& p, const Expr& e, bool inside, int& guard) {
    if (e.args.size() != p.dims.size())
      b.fail(&e, e.name + " has " + std::to_string(p.dims.size()) + " dims, got " + std::to_string(e.args.size()) +
                     " indices");
    Graph& g = b.g;
    std::vector<int> place;
    auto also = [&](int condition) { guard = guard < 0 ? condition : g.op(Op::And, DType::Bool, guard, condition); };
    for (size_t k = 0; k < p.dims.size(); ++k) {
      const SpaceDim& d = p.dims[k];
      const Expr& index = *e.args[k];
      const std::vector<int>& ranges = ranges_.at(d.name);
      const bool itself = index.kind == Expr::Name && index.name == d.name && iterated_.at(d.name);
      if (d.name == kPlain && !itself) b.fail(&index, "the plain group is indexed by itself alone");
      for (size_t c = 0; c < ranges.size(); ++c) {
        if (itself) {
          place.push_back(leaf(Op::Range, ranges[c]));
          continue;
        }
        const int outer = component_;
        if (d.group) component_ = int(c);
        place.push_back(index_value(b, index, ranges[c], inside, also));
        component_ = outer;
      }
    }
    return place;
  }

  template <class F>
  int index_value(Builder& b, const Expr& e, int range, bool inside, F also) {
    Graph& g = b.g;
    const bool checked = e.kind == Expr::Call && e.name == "checked",
               wrapped = e.kind == Expr::Call && e.name == "wrapped";
    if ((checked || wrapped) && e.args.size() != 1) b.fail(&e, e.name + " takes one index");
    int v = b.cast(b.eval(checked || wrapped ? *e.args[0] : e), DType::I64).re;
    if (wrapped)
      v = g.select(g.compare(Op::Lt, v, g.integer(DType::I64, 0)), g.bin(Op::Add, v, leaf(Op::Extent, range)), v);
    if (!checked && !wrapped && !inside) return v;
    int within = fits(g, v, range);
    if (checked || wrapped) within = g.add({Op::Check, DType::Bool, {within, -1, -1}, 2});
    also(within);
    return v;
  }

  // ---- scalars: a list of a group has one for each of its dims

  int list_element(const std::string& name, int component) {
    int number = 0;
    for (const SpacePattern& p : patterns_named(desc_.scalars)) {
      if (p.name == name) break;
      number += p.dims.empty() ? 1 : form_.rank;
    }
    return builder_.g.add({Op::Param, DType::I64, {-1, -1, -1}, uint64_t(kOwn + number + component)});
  }

  void scalars(const Kernel& k) {
    const std::vector<SpacePattern> list = patterns_named(desc_.scalars);
    std::vector<int> number(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      number[i] = int(nest_.scalars.size());
      if (list[i].dims.empty())
        nest_.scalars.push_back(k.scalars[i]);
      else
        for (int c = 0; c < form_.rank; ++c) nest_.scalars.push_back({list[i].name + std::to_string(c), DType::I64});
    }
    for (Node& n : builder_.g.nodes)
      if (n.op == Op::Param) n.imm = n.imm >= kOwn ? n.imm - kOwn : uint64_t(number[n.imm]);
  }

  static constexpr uint64_t kOwn = 1 << 16;  // parameters of lists, numbered as the nest does
  const KernelDesc& desc_;
  const SpaceForm form_;
  Builder builder_;
  std::vector<SpacePattern> outputs_, inputs_;
  std::vector<std::string> lists_;
  std::map<std::string, std::vector<int>> ranges_;
  std::map<std::string, bool> iterated_;
  std::vector<bool> runs_;
  bool scatters_ = false;
  CarryTexts carries_;
  NestStore store_{};       // of a text that scatters
  std::vector<int> place_;  // and its place
  uint64_t over_ = 0;       // ranges that reductions run over
  int* absent_ = nullptr;   // the guard of the reduction at hand
  int component_ = -1;      // which dim of a group an index is evaluated for
  Nest nest_;
};

}  // namespace

Nest build_space(const KernelDesc& desc, DType dtype, SpaceForm form) { return SpaceNest(desc, dtype, form).run(); }

std::vector<SpaceForm> space_forms(const KernelDesc& desc, DType dtype) {
  bool group = false, plain = false;
  for (const char* list : {desc.outputs, desc.inputs})
    for (const SpacePattern& p : patterns_named(list))
      for (const SpaceDim& d : p.dims) (d.name == kPlain ? plain : group) |= d.group;
  std::vector<SpaceForm> forms;
  const int first = !group ? 0 : desc.rank ? desc.rank : 1, last = !group ? 0 : desc.rank ? desc.rank : 3;
  for (int rank = first; rank <= last; ++rank)
    for (bool inner : {false, true})
      if ((plain && !carries_along(desc)) || !inner) forms.push_back({rank, inner});
  const NestStore::Into into = into_of(desc);
  const bool rounds = is_float(dtype) || is_complex(dtype);
  if ((into == NestStore::Add || into == NestStore::Mul) && rounds && !desc.sequence)
    for (size_t k = 0, count = forms.size(); k < count; ++k) {
      forms.push_back(forms[k]);
      forms.back().chained = true;
    }
  return forms;
}

std::string space_name(const std::string& kernel, SpaceForm form) {
  return kernel + (form.rank ? "_r" + std::to_string(form.rank) : "") + (form.inner ? "_in" : "") +
         (form.chained ? "_chains" : "");
}

}  // namespace strata::lower
