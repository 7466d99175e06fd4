#include "lower/pass/signs.h"

#include <algorithm>

namespace strata::lower {
namespace {

enum Read : uint8_t { Nothing, Magnitude, Whole };

class Signs {
 public:
  explicit Signs(Graph& g) : g_(g), read_(g.nodes.size(), Nothing) {}

  void run(const std::vector<std::array<int, 2>>& outputs) {
    for (const auto& o : outputs)
      for (int v : o) read(v, Whole);
    for (size_t v = g_.nodes.size(); v-- > 0;)
      if (read_[v] != Nothing) arguments(g_.nodes[v], read_[v]);
    std::vector<int> instead(g_.nodes.size());
    for (size_t v = 0; v < instead.size(); ++v) {
      Node& n = g_.nodes[v];
      for (int& a : n.arg)
        if (a >= 0) a = instead[size_t(a)];
      instead[v] = int(v);
      const int kept = read_[v] == Magnitude ? without_sign(n) : same_bits(n);
      if (kept >= 0) instead[v] = kept;
    }
  }

 private:
  void read(int v, Read how) {
    if (v >= 0) read_[size_t(v)] = std::max(read_[size_t(v)], how);
  }

  uint64_t top(int v) const { return uint64_t(1) << (traits(g_.type(v)).bits - 1); }
  const Node* constant(int v) const { return g_.node(v).op == Op::Const ? &g_.node(v) : nullptr; }

  // What a node that is read so reads of its arguments.
  void arguments(const Node& n, Read how) {
    const auto [a, b, c] = n.arg;
    if (n.type == DType::Bool) how = Whole;
    switch (n.op) {
      case Op::Reduced:
        for (int v : g_.reductions[n.imm].reads()) read(v, Whole);
        return;
      case Op::Carried:
        for (int v : g_.carries[n.imm].uses()) read(v, Whole);
        return;
      case Op::Select:
      case Op::Rare:
        read(a, Whole);
        read(b, how);
        read(c, how);
        return;
      case Op::Bitcast:
      case Op::Neg:
      case Op::Or:
      case Op::Xor:
        break;
      case Op::Mul:
      case Op::Div:
        if (!is_float(n.type)) how = Whole;
        if (a == b && is_float(n.type)) how = Magnitude;
        break;
      case Op::Fma:
        read(a, a == b ? Magnitude : Whole);
        read(b, a == b ? Magnitude : Whole);
        read(c, Whole);
        return;
      case Op::And:
        if (const Node* mask = constant(b); mask && n.type != DType::Bool && !(mask->imm & top(b))) {
          read(a, Magnitude);
          return;
        }
        break;
      case Op::Shl:
        if (const Node* by = constant(b); by && by->imm > 0) how = Magnitude;
        read(a, how);
        read(b, Whole);
        return;
      default:
        how = Whole;
    }
    for (int v : n.arg) read(v, how);
  }

  // Of its bits none is set but the sign.
  bool only_sign(int v) const {
    const Node& n = g_.node(v);
    if (n.op == Op::Const) return n.imm == top(v);
    if (n.op == Op::And && constant(n.arg[1])) return constant(n.arg[1])->imm == top(v);
    if (n.op != Op::Shl || !constant(n.arg[1])) return false;
    const int bits = traits(n.type).bits, by = int(constant(n.arg[1])->imm);
    if (by == bits - 1) return true;
    const Node& of = g_.node(n.arg[0]);
    return of.op == Op::And && constant(of.arg[1]) && constant(of.arg[1])->imm == top(v) >> by;
  }

  // The argument that has the same magnitude, or -1.
  int without_sign(const Node& n) const {
    const auto [a, b, c] = n.arg;
    switch (n.op) {
      case Op::Neg:
        return is_float(n.type) ? a : -1;
      case Op::And: {
        const Node* mask = constant(b);
        return mask && mask->imm == top(b) - 1 ? a : -1;
      }
      case Op::Or:
      case Op::Xor:
        return only_sign(b) ? a : only_sign(a) ? b : -1;
      default:
        return same_bits(n);
    }
  }

  // Bits to a number and back, when nothing between them is left.
  int same_bits(const Node& n) const {
    if (n.op != Op::Bitcast || g_.node(n.arg[0]).op != Op::Bitcast) return -1;
    const int inner = g_.node(n.arg[0]).arg[0];
    return g_.type(inner) == n.type ? inner : -1;
  }

  Graph& g_;
  std::vector<Read> read_;
};

}  // namespace

void ignore_signs(Graph& graph, const std::vector<std::array<int, 2>>& outputs) { Signs(graph).run(outputs); }

}  // namespace strata::lower
