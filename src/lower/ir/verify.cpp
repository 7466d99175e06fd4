// The spec of a kernel in ir.h, executed.
#include <algorithm>

#include "base/error.h"
#include "lower/ir/ir.h"

namespace strata::lower {

namespace {

class Verifier {
 public:
  Verifier(const Kernel& k, size_t number) : k_(k), p_(k.passes[number]), number_(number) {
    for (size_t p = 0; p < number; ++p) {
      for (const Reduction& r : k.passes[p].reductions) reduced_.push_back(r.accumulator);
      for (const Store& s : k.passes[p].stores)
        if (s.scratch) kept_.push_back(s.operand);
    }
  }

  void run() {
    for (size_t v = 0; v < p_.nodes.size(); ++v) {
      at_ = int(v);
      node(p_.nodes[v]);
    }
    at_ = -1;
    for (const Carry& c : p_.carries) carry(c);
    for (const Reduction& r : p_.reductions) reduction(r);
    for (const Store& s : p_.stores) store(s);
  }

 private:
  template <class... T>
  void need(bool holds, const T&... what) const {
    if (holds) return;
    const std::string where =
        at_ < 0 ? std::string() : str_cat(", node ", at_, " (", op_name(p_.nodes[size_t(at_)].op), ")");
    STRATA_INTERNAL(false, k_.name, ", pass ", number_, where, ": ", what...);
  }

  bool in_pass(int v) const { return v >= 0 && v < int(p_.nodes.size()); }
  DType type(int v) const { return p_.nodes[size_t(v)].type; }
  bool is(int v, DType t) const { return v >= 0 && type(v) == t; }

  static int arguments(const Node& n) {
    if (n.leaf() || n.op == Op::Carried) return 0;
    if (n.op <= Op::NarrowHalf) return 1;
    return n.op == Op::Fma || n.op == Op::Select || n.op == Op::Rare ? 3 : 2;
  }

  void node(const Node& n) const {
    const int count = arguments(n);
    for (int i = 0; i < 3; ++i)
      need((n.arg[size_t(i)] >= 0) == (i < count), "has ", i < count ? "too few" : "too many", " arguments");
    for (int i = 0; i < count; ++i) {
      const int a = n.arg[size_t(i)];
      need(a < at_, "uses node ", a, ", which follows it");
      need(!n.uniform || p_.nodes[size_t(a)].uniform, "is one for the row, but made of node ", a, ", which is not");
    }
    leaf(n);
    types(n);
  }

  void leaf(const Node& n) const {
    switch (n.op) {
      case Op::Param:
        need(n.imm < k_.scalars.size(), "names number ", n.imm);
        break;
      case Op::Load:
        need(n.imm < k_.inputs.size(), "names input ", n.imm);
        need(n.type == storage_node_type(k_.inputs[n.imm].storage), "reads another type than its operand's");
        need(!n.uniform || k_.inputs[n.imm].per_row || k_.inputs[n.imm].broadcast, "is one for the row, but input ",
             n.imm, " is not");
        break;
      case Op::Scratch:
        need(n.imm < k_.scratch.size() && n.type == k_.scratch[n.imm], "names scratch row ", n.imm, " of another type");
        need(std::ranges::count(kept_, int(n.imm)) == 1, "reads scratch row ", n.imm,
             ", which no pass before has written once");
        break;
      case Op::Reduced:
        need(n.imm < reduced_.size(), "names reduction ", n.imm, ", which no pass before has made");
        need(n.uniform, "is not one for the row");
        break;
      case Op::State:
      case Op::Carried:
        need(n.imm < p_.carries.size() && n.part < p_.carries[n.imm].start.size(), "names carry ", n.imm);
        need(n.type == type(p_.carries[n.imm].start[n.part]), "has another type than what its carry begins with");
        break;
      case Op::Range:
      case Op::Extent:
      case Op::Stride:
      case Op::At:
      case Op::Check:
        need(false, "is of a kernel over an index space");
        break;
      default:
        break;
    }
  }

  void types(const Node& n) const {
    const auto all = [&](DType t) { return std::ranges::all_of(n.arg, [&](int a) { return a < 0 || type(a) == t; }); };
    switch (n.op) {
      case Op::Index:
      case Op::Length:
        need(n.type == DType::I64, "is no I64");
        break;
      case Op::WidenHalf:
        need(n.type == DType::F32 && all(DType::U16), "makes no F32 of an U16");
        break;
      case Op::NarrowHalf:
        need(n.type == DType::U16 && all(DType::F32), "makes no U16 of an F32");
        break;
      case Op::Bitcast:
        need(itemsize(n.type) == itemsize(type(n.arg[0])), "changes the number of bits");
        break;
      case Op::Sqrt:
      case Op::Floor:
      case Op::Ceil:
      case Op::Trunc:
      case Op::Rint:
      case Op::Fma:
        need(is_float(n.type) && all(n.type), "is not of one floating type");
        break;
      case Op::Neg:
      case Op::Not:
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Div:
      case Op::And:
      case Op::Or:
      case Op::Xor:
      case Op::Call:
        need(all(n.type), "is of another type than its arguments");
        break;
      case Op::Shl:
      case Op::Shr:
        need(type(n.arg[0]) == n.type && is_integral(n.type, false), "is of another type than what it shifts");
        break;
      case Op::Eq:
      case Op::Ne:
      case Op::Lt:
      case Op::Le:
      case Op::Gt:
      case Op::Ge:
        need(n.type == DType::Bool && all(type(n.arg[0])), "compares two types, or gives no Bool");
        break;
      case Op::Select:
      case Op::Rare:
        need(is(n.arg[0], DType::Bool) && is(n.arg[1], n.type) && is(n.arg[2], n.type),
             "chooses by no Bool, or between two types");
        break;
      default:
        break;
    }
  }

  void carry(const Carry& c) const {
    need(c.kind == Carry::Repeat && in_pass(c.going) && is(c.going, DType::Bool),
         "a carry that does not repeat, or goes on by what is no condition");
    need(c.start.size() == c.next.size(), "a carry with more values at its start than behind it");
    for (size_t i = 0; i < c.start.size(); ++i)
      need(in_pass(c.start[i]) && in_pass(c.next[i]) && type(c.start[i]) == type(c.next[i]),
           "a carry that changes the type of value ", i);
  }

  void reduction(const Reduction& r) const {
    need(in_pass(r.value[0]), "a reduction of nothing");
    need((r.value[1] >= 0) == is_complex(r.accumulator), "a reduction whose second value and accumulator do not fit");
    for (int v : r.value) need(v < int(p_.nodes.size()), "a reduction of node ", v);
  }

  void store(const Store& s) const {
    need(in_pass(s.value), "a store of node ", s.value);
    if (s.scratch) {
      need(s.operand < int(k_.scratch.size()) && type(s.value) == k_.scratch[size_t(s.operand)],
           "a store into scratch row ", s.operand, " of another type");
      return;
    }
    need(s.operand < int(k_.outputs.size()), "a store into output ", s.operand);
    const Operand& o = k_.outputs[size_t(s.operand)];
    need(type(s.value) == storage_node_type(o.storage), "a store of another type than that of output ", o.name);
    need(!o.per_row || p_.nodes[size_t(s.value)].uniform, "a store of a value per element into output ", o.name,
         ", which has one per row");
  }

  const Kernel& k_;
  const Pass& p_;
  size_t number_;
  int at_ = -1;
  std::vector<DType> reduced_;  // by passes before
  std::vector<int> kept_;
};

}  // namespace

void verify(const Kernel& kernel) {
  const auto fits = [&](bool holds, const char* what) { STRATA_INTERNAL(holds, kernel.name, ": ", what); };
  fits(!kernel.passes.empty(), "no pass");
  fits(kernel.kind == KernelKind::Rows || kernel.passes.size() == 1, "several passes over elements");
  std::vector<int> stores(2 * kernel.outputs.size());
  for (size_t p = 0; p < kernel.passes.size(); ++p) {
    Verifier(kernel, p).run();
    fits(kernel.kind == KernelKind::Rows || kernel.passes[p].reductions.empty(), "a reduction over no row");
    for (const Store& s : kernel.passes[p].stores)
      if (!s.scratch) ++stores[2 * size_t(s.operand) + s.part];
  }
  for (size_t k = 0; k < kernel.outputs.size(); ++k)
    fits(stores[2 * k] == 1 && stores[2 * k + 1] == is_complex(kernel.outputs[k].storage),
         "an output that is not written once");
}

}  // namespace strata::lower
