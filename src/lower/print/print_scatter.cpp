// Contributions in a printed nest, which change an element that other turns of the loops may change, too: Note
// [Chains].
#include <bit>

#include "lower/print/nest_printer.h"

namespace strata::lower {
namespace {

constexpr const char* kChain = "1023";  // contributions of a chain, less one

}  // namespace

// The element and the value of each part, joined: what the element becomes. Where equal, the later one stays; NaN does.
std::vector<std::string> NestPrinter::joined(const NestStore& s, const std::vector<std::string>& to,
                                             const std::vector<std::string>& v) const {
  const DType t = nest_.operands[size_t(s.operand)].storage, part = storage_node_type(t);
  const bool is_bool = t == DType::Bool;
  switch (s.into) {
    case NestStore::Add:
      if (is_bool) return {to[0] + " | " + v[0]};
      if (v.size() == 1) return {values_.arithmetic("+", part, to[0], v[0])};
      return {to[0] + " + " + v[0], to[1] + " + " + v[1]};
    case NestStore::Mul:
      if (is_bool) return {to[0] + " & " + v[0]};
      if (v.size() == 1) return {values_.arithmetic("*", part, to[0], v[0])};
      return {to[0] + " * " + v[0] + " - " + to[1] + " * " + v[1], to[0] + " * " + v[1] + " + " + to[1] + " * " + v[0]};
    case NestStore::Max:
    case NestStore::Min: {
      const std::string stays = to[0] + (s.into == NestStore::Max ? " > " : " < ") + v[0];
      const std::string nan = is_float(part) ? "(" + to[0] + " != " + to[0] + ") | " : "";
      return {nan + "(" + stays + ") ? " + to[0] + " : " + v[0]};
    }
    default:
      return v;
  }
}

void NestPrinter::contribute(int store) {
  const NestStore& s = nest_.stores[size_t(store)];
  const NestOperand& o = nest_.operands[size_t(s.operand)];
  const bool pairs = is_complex(o.storage);
  const std::string type = values_.type(storage_node_type(o.storage));
  const std::string space = values_.dialect().memory;
  const bool guarded = s.guard >= 0 && !guarded_ && nest_.nodes[size_t(same(s.guard))].op != Op::Const;
  open(guarded ? "if (" + ref(s.guard) + ") {" : "{");
  std::vector<std::string> v = {ref(s.value)}, to = {"*to"}, sum = {"*sum"};
  const std::string at = place(piece_ ? &piece_->writes : nullptr, store, s.offset, false, 0);
  const std::string element = pairs ? "2 * (" + at + ")" : at;
  line(space + type + "* const to = p_" + o.label() + " + " + element + ";");
  if (pairs) {
    v.push_back(ref(s.imaginary));
    to = {"to[0]", "to[1]"};
    sum = {"sum[0]", "sum[1]"};
  }
  auto assign = [&](const std::vector<std::string>& left, const std::vector<std::string>& right) {
    if (right.size() == 1) return line(left[0] + " = " + right[0] + ";");
    line("const " + type + " re = " + right[0] + ", im = " + right[1] + ";");
    line(left[0] + " = re, " + left[1] + " = im;");
  };
  if (s.chains) {
    line("const u32 turn = p_" + std::string(Nest::kCount) + "_out[" + at + "]++;");
    const std::string seldom = values_.dialect().seldom ? values_.dialect().seldom : "";
    auto otherwise = [&](const std::string& text) { --depth_, open(text); };
    open("if (" + seldom + "((turn & " + kChain + ") == 0)) {");
    line(space + type + "* const sum = p_" + std::string(Nest::kTotal) + "_out + " + element + ";");
    open("if (turn == 0) {");
    assign(to, joined(s, to, v));
    otherwise("} else if (turn == 1024) {");
    for (size_t k = 0; k < to.size(); ++k) line(sum[k] + " = " + to[k] + ";");
    for (size_t k = 0; k < to.size(); ++k) line(to[k] + " = " + v[k] + ";");
    otherwise("} else {");
    assign(sum, joined(s, sum, to));
    for (size_t k = 0; k < to.size(); ++k) line(to[k] + " = " + v[k] + ";");
    close();
    otherwise("} else {");
    assign(to, joined(s, to, v));
    close();
  } else {
    assign(to, joined(s, to, v));
  }
  if (guarded && reports(s.guard)) {
    --depth_;
    open("} else {");
    line("found |= " + std::to_string(nest_.nodes[size_t(same(s.guard))].imm) + ";");
  }
  close();
}

// Of contributions in chains: asks for the index that is read some turns later, without which nothing can begin.
void NestPrinter::read_ahead(int v) {
  constexpr const char* kTurns = "512";
  const char* ahead = values_.dialect().ahead;
  const Node& n = nest_.nodes[size_t(v)];
  const NestOperand& o = nest_.operands[n.imm];
  if (!ahead || !is_integral(o.storage) ||
      std::ranges::none_of(nest_.stores, [](const NestStore& s) { return s.chains; }))
    return;
  const int innermost = 63 - std::countl_zero(nest_.loops());
  for (size_t d = 0; d < o.dims.size(); ++d)
    if (o.dims[d] == innermost)
      line(std::string(ahead) + "(p_" + o.label() + " + " +
           place(piece_ ? &piece_->reads : nullptr, v, n.arg[0], false, 0) + " + " + kTurns + " * " +
           parameter(NestParameter::Stride, int(n.imm), uint8_t(d)) + ");");
}

// Whether a condition of the innermost loop sets the status where it is false, and nothing but the one store asks for
// it: then the store's other branch does.
bool NestPrinter::reports(int condition) const {
  const int v = same(condition);
  const int innermost = 63 - std::countl_zero(nest_.loops());
  if (nest_.nodes[size_t(v)].op != Op::Check || nest_.stores.size() != 1) return false;
  if (!(nest_.depends[size_t(v)] >> innermost & 1)) return false;
  for (const Node& n : nest_.nodes)
    for (int a : n.arg)
      if (a >= 0 && same(a) == v) return false;
  return true;
}

}  // namespace strata::lower
