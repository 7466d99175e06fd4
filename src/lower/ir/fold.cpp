// Constant folding and the few identities that keep every bit (NaN payloads aside).
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "lower/ir/ir.h"

namespace strata::lower {
namespace {

template <class T>
T from_bits(uint64_t b) {
  if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T>)
    return std::bit_cast<float>(uint32_t(b));
  else if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<double>(b);
  else
    return T(b);
}

template <class T>
uint64_t to_bits(T v) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(v);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(v);
  else
    return uint64_t(std::make_unsigned_t<T>(v));
}

template <class F>
auto with_type(DType t, F&& f) {
  switch (t) {
    case DType::U8:
    case DType::Bool:
      return f(uint8_t());
    case DType::I8:
      return f(int8_t());
    case DType::U16:
      return f(uint16_t());
    case DType::I16:
      return f(int16_t());
    case DType::U32:
      return f(uint32_t());
    case DType::I32:
      return f(int32_t());
    case DType::U64:
      return f(uint64_t());
    case DType::I64:
      return f(int64_t());
    case DType::F32:
      return f(float());
    default:
      return f(double());
  }
}

template <class T>
std::optional<uint64_t> arithmetic(const Node& n, T a, T b, T c) {
  auto out = [](T v) { return std::optional<uint64_t>(to_bits(v)); };
  auto flag = [](bool v) { return std::optional<uint64_t>(v); };
  switch (n.op) {
    case Op::Eq:
      return flag(a == b);
    case Op::Ne:
      return flag(a != b);
    case Op::Lt:
      return flag(a < b);
    case Op::Le:
      return flag(a <= b);
    case Op::Gt:
      return flag(a > b);
    case Op::Ge:
      return flag(a >= b);
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (n.op) {
      case Op::Neg:
        return out(-a);
      case Op::Add:
        return out(a + b);
      case Op::Sub:
        return out(a - b);
      case Op::Mul:
        return out(a * b);
      case Op::Div:
        return out(a / b);
      case Op::Fma:
        return out(std::fma(a, b, c));
      case Op::Sqrt:
        return out(std::sqrt(a));
      case Op::Floor:
        return out(std::floor(a));
      case Op::Ceil:
        return out(std::ceil(a));
      case Op::Trunc:
        return out(std::trunc(a));
      case Op::Rint:
        return out(std::nearbyint(a));
      default:
        return std::nullopt;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    using W = uint64_t;
    switch (n.op) {
      case Op::Neg:
        return out(T(U(0 - W(a))));
      case Op::Add:
        return out(T(U(W(a) + W(b))));
      case Op::Sub:
        return out(T(U(W(a) - W(b))));
      case Op::Mul:
        return out(T(U(W(a) * W(b))));
      case Op::And:
        return out(T(a & b));
      case Op::Or:
        return out(T(a | b));
      case Op::Xor:
        return out(T(a ^ b));
      case Op::Not:
        return n.type == DType::Bool ? out(T(!a)) : out(T(~a));
      case Op::Shl:
        return out(T(U(W(a) << W(b))));
      case Op::Shr:
        return out(T(a >> b));
      default:
        return std::nullopt;
    }
  }
}

std::optional<uint64_t> fold_constants(const Graph& g, const Node& n) {
  const Node& a = g.node(n.arg[0]);
  if (n.op == Op::Bitcast) return a.imm;
  if (n.op == Op::Convert)
    return with_type(a.type, [&](auto from) {
      auto v = from_bits<decltype(from)>(a.imm);
      return with_type(n.type, [&](auto to) { return std::optional<uint64_t>(to_bits(decltype(to)(v))); });
    });
  uint64_t b = n.arg[1] >= 0 ? g.node(n.arg[1]).imm : 0, c = n.arg[2] >= 0 ? g.node(n.arg[2]).imm : 0;
  return with_type(a.type, [&](auto t) {
    using T = decltype(t);
    return arithmetic<T>(n, from_bits<T>(a.imm), from_bits<T>(b), from_bits<T>(c));
  });
}

bool is_const(const Graph& g, int v, uint64_t bits) {
  return v >= 0 && g.node(v).op == Op::Const && g.node(v).imm == bits;
}

uint64_t one_bits(DType t) { return t == DType::F32 ? to_bits(1.0f) : t == DType::F64 ? to_bits(1.0) : 1; }
uint64_t minus_zero_bits(DType t) { return t == DType::F32 ? to_bits(-0.0f) : t == DType::F64 ? to_bits(-0.0) : 0; }
uint64_t all_ones(DType t) {
  int bits = traits(t).bits;
  return t == DType::Bool ? 1 : bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
}

// v, where `a` is its absolute value: its bits without the sign. Else -1.
int magnitude_of(const Graph& g, int a) {
  const Node& back = g.node(a);
  if (back.op != Op::Bitcast || !is_float(back.type)) return -1;
  const Node& masked = g.node(back.arg[0]);
  if (masked.op != Op::And || !is_const(g, masked.arg[1], (uint64_t(1) << (traits(back.type).bits - 1)) - 1)) return -1;
  const Node& bits = g.node(masked.arg[0]);
  return bits.op == Op::Bitcast && g.type(bits.arg[0]) == back.type ? bits.arg[0] : -1;
}

// |v| compared with zero, as v compared with zero. Clang 19 takes `|v| is NaN, or |v| > 0.0` for `v is NaN, or v >
// 0.0`.
int fold_magnitude(Graph& g, Op op, int a, int b) {
  const int v = magnitude_of(g, a);
  if (v < 0 || (!is_const(g, b, 0) && !is_const(g, b, minus_zero_bits(g.type(v))))) return -1;
  switch (op) {
    case Op::Lt:
      return g.integer(DType::Bool, 0);
    case Op::Le:
    case Op::Eq:
      return g.compare(Op::Eq, v, b);
    case Op::Gt: {
      const int below = g.compare(Op::Lt, v, b), above = g.compare(Op::Gt, v, b);
      return g.op(Op::Or, DType::Bool, below, above);
    }
    case Op::Ge:
      return g.compare(Op::Eq, v, v);
    case Op::Ne:
      return g.compare(Op::Ne, v, b);
    default:
      return -1;
  }
}

// x - max(x), which is 0 or less, or NaN, where x is among the values whose maximum it is.
bool never_above_zero(const Graph& g, int v) {
  const Node& n = g.node(v);
  if (n.op != Op::Sub || g.node(n.arg[1]).op != Op::Reduced) return false;
  const Reduction& r = g.reductions[g.node(n.arg[1]).imm];
  return r.combine == Combine::Max && r.value[0] == n.arg[0] && r.guard < 0 && r.chunk < 0 && !r.of_chunks;
}

bool never_greater(const Graph& g, int a, int b) {
  const Node& c = g.node(b);
  if (!is_float(g.type(a)) || c.op != Op::Const || !never_above_zero(g, a)) return false;
  return g.type(a) == DType::F32 ? from_bits<float>(c.imm) >= 0 : from_bits<double>(c.imm) >= 0;
}

Op turned(Op op) {
  return op == Op::Lt ? Op::Gt : op == Op::Le ? Op::Ge : op == Op::Gt ? Op::Lt : op == Op::Ge ? Op::Le : op;
}

}  // namespace

int fold(Graph& g, const Node& n) {
  if (n.leaf() || n.op == Op::Carried) return -1;
  auto [a, b, c] = n.arg;
  DType t = n.type;
  if ((n.op == Op::Convert || n.op == Op::Bitcast) && g.type(a) == t) return a;
  if (n.op == Op::Bitcast && g.node(a).op == Op::Bitcast) {
    int inner = g.node(a).arg[0];
    return g.type(inner) == t ? inner : g.op(Op::Bitcast, t, inner);
  }
  if (n.op == Op::Select || n.op == Op::Rare) {
    if (b == c) return b;
    if (g.node(a).op == Op::Const) return g.node(a).imm ? b : c;
    return -1;
  }
  if (n.op == Op::Call || n.op == Op::At) return -1;
  if (n.op == Op::Check) return is_const(g, a, 1) ? a : -1;
  bool constants = true;
  for (int v : n.arg)
    if (v >= 0 && g.node(v).op != Op::Const) constants = false;
  if (constants)
    if (auto bits = fold_constants(g, n)) return g.constant(t, *bits);
  switch (n.op) {
    case Op::Not:
      if (g.node(a).op == Op::Not) return g.node(a).arg[0];
      break;
    case Op::Add:
      if (is_const(g, b, minus_zero_bits(t))) return a;
      if (is_const(g, a, minus_zero_bits(t))) return b;
      break;
    case Op::Sub:
      if (is_const(g, b, 0)) return a;
      break;
    case Op::Mul:
      if (is_const(g, b, one_bits(t))) return a;
      if (is_const(g, a, one_bits(t))) return b;
      if (is_integral(t) && is_const(g, a, 0)) return a;
      if (is_integral(t) && is_const(g, b, 0)) return b;
      break;
    case Op::Div:
      if (is_const(g, b, one_bits(t))) return a;
      break;
    case Op::And:
      if (a == b || is_const(g, b, all_ones(t))) return a;
      if (is_const(g, a, all_ones(t))) return b;
      if (is_const(g, b, 0)) return b;
      if (is_const(g, a, 0)) return a;
      break;
    case Op::Or:
      if (a == b || is_const(g, b, 0)) return a;
      if (is_const(g, a, 0)) return b;
      if (is_const(g, b, all_ones(t))) return b;
      if (is_const(g, a, all_ones(t))) return a;
      break;
    case Op::Xor:
    case Op::Shl:
    case Op::Shr:
      if (is_const(g, b, 0)) return a;
      break;
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq:
    case Op::Ne: {
      if ((n.op == Op::Gt && never_greater(g, a, b)) || (n.op == Op::Lt && never_greater(g, b, a)))
        return g.integer(DType::Bool, 0);
      const int found = fold_magnitude(g, n.op, a, b);
      return found >= 0 ? found : fold_magnitude(g, turned(n.op), b, a);
    }
    default:
      break;
  }
  return -1;
}

}  // namespace strata::lower
