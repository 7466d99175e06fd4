// Total conversions, and the forms of half floats, bools and complex parts in memory.
#include <cmath>

#include "lower/ir/ir.h"

namespace strata::lower {
namespace {

int range_end(Graph& g, DType from, DType to, bool top) {  // the last value of `from` inside `to`'s range
  bool is_signed = traits(to).kind == DKind::Signed;
  if (!top) return g.real(from, is_signed ? -std::ldexp(1.0, traits(to).bits - 1) : 0.0);
  double end = std::ldexp(1.0, traits(to).bits - (is_signed ? 1 : 0));
  double last = from == DType::F32 ? double(std::nextafterf(float(end), 0.0f)) : std::nextafter(end, 0.0);
  return g.real(from, std::min(last, end - 1));
}

int float_to_int(Graph& g, int v, DType to) {
  DType from = g.type(v);
  int low = range_end(g, from, to, false), top = range_end(g, from, to, true);
  int inside = g.select(g.compare(Op::Gt, v, top), top, v);
  inside = g.select(g.compare(Op::Lt, inside, low), low, inside);
  inside = g.select(g.compare(Op::Ne, v, v), g.real(from, 0), inside);
  int r = g.op(Op::Convert, to, inside);
  int bits = traits(to).bits, precision = from == DType::F32 ? 24 : 53;
  if (bits <= precision) return r;
  bool is_signed = traits(to).kind == DKind::Signed;
  int64_t last = is_signed ? int64_t((uint64_t(1) << (bits - 1)) - 1) : -1;  // above `top` there is only the last one
  return g.select(g.compare(Op::Gt, v, top), g.integer(to, last), r);
}

}  // namespace

int widen_half(Graph& g, int v) {
  DType u = DType::U32, f = DType::F32;
  auto k = [&](uint32_t b) { return g.constant(u, b); };
  int h = g.op(Op::Convert, u, v);
  int sign = g.bin(Op::Shl, g.bin(Op::And, h, k(0x8000)), k(16));
  int magnitude = g.bin(Op::And, h, k(0x7fff));
  int wide = g.bin(Op::Shl, magnitude, k(13));
  int normal = g.bin(Op::Add, wide, k(112u << 23));
  int special = g.bin(Op::Or, wide, k(0x7f800000));
  int tiny = g.bin(Op::Mul, g.op(Op::Convert, f, g.op(Op::Convert, DType::I32, magnitude)), g.real(f, 0x1p-24));
  int r = g.select(g.compare(Op::Ge, magnitude, k(0x7c00)), special, normal);
  r = g.select(g.compare(Op::Lt, magnitude, k(0x400)), g.op(Op::Bitcast, u, tiny), r);
  return g.op(Op::Bitcast, f, g.bin(Op::Or, r, sign));
}

int narrow_half(Graph& g, int v) {
  DType u = DType::U32, f = DType::F32;
  auto k = [&](uint32_t b) { return g.constant(u, b); };
  int b = g.op(Op::Bitcast, u, v);
  int sign = g.bin(Op::And, g.bin(Op::Shr, b, k(16)), k(0x8000));
  int magnitude = g.bin(Op::And, b, k(0x7fffffff));
  int odd = g.bin(Op::And, g.bin(Op::Shr, magnitude, k(13)), k(1));
  int rounded = g.bin(Op::Add, g.bin(Op::Add, magnitude, k(0xfff - 0x38000000u)), odd);
  int r = g.bin(Op::Shr, rounded, k(13));
  // Below the normal range the adder of floats rounds: 0.5 has the spacing of a half's subnormals.
  int tiny = g.bin(Op::Add, g.op(Op::Bitcast, f, magnitude), g.real(f, 0.5));
  tiny = g.bin(Op::Sub, g.op(Op::Bitcast, u, tiny), k(0x3f000000));
  r = g.select(g.compare(Op::Lt, magnitude, k(0x38800000)), tiny, r);
  r = g.select(g.compare(Op::Ge, magnitude, k(0x47800000)), k(0x7c00), r);
  r = g.select(g.compare(Op::Gt, magnitude, k(0x7f800000)), k(0x7e00), r);
  return g.op(Op::Convert, DType::U16, g.bin(Op::Or, r, sign));
}

namespace {

int bf16_to_f32(Graph& g, int v) {
  int wide = g.op(Op::Convert, DType::U32, v);
  return g.op(Op::Bitcast, DType::F32, g.bin(Op::Shl, wide, g.constant(DType::U32, 16)));
}

// Whether the lower half of a value of 32 bits is known to be zero: as float32 it is a bfloat16, or a NaN. What chooses
// among such, and what changes signs or drops fractions, gives such.
bool has_low_zeros(const Graph& g, int v, int depth = 12) {
  const Node& n = g.node(v);
  const auto arg = [&](int i) { return depth > 0 && has_low_zeros(g, n.arg[size_t(i)], depth - 1); };
  if (traits(n.type).bits != 32) return false;
  switch (n.op) {
    case Op::Const:
      return (n.imm & 0xffff) == 0;
    case Op::Shl: {
      const Node& by = g.node(n.arg[1]);
      return by.op == Op::Const && by.imm >= 16;
    }
    case Op::And:
      return arg(0) || arg(1);
    case Op::Or:
    case Op::Xor:
      return arg(0) && arg(1);
    case Op::Select:
    case Op::Rare:
      return arg(1) && arg(2);
    case Op::Bitcast:
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Rint:
      return arg(0);
    case Op::Neg:
      return is_float(n.type) && arg(0);
    default:
      return false;
  }
}

int f32_to_bf16(Graph& g, int v) {
  DType u = DType::U32;
  auto k = [&](uint32_t b) { return g.constant(u, b); };
  int b = g.op(Op::Bitcast, u, v);
  int high = g.bin(Op::Shr, b, k(16));
  if (has_low_zeros(g, v)) return g.op(Op::Convert, DType::U16, high);
  int rounded = g.bin(Op::Shr, g.bin(Op::Add, g.bin(Op::Add, b, g.bin(Op::And, high, k(1))), k(0x7fff)), k(16));
  int quiet = g.bin(Op::Or, high, k(0x40));
  return g.op(Op::Convert, DType::U16, g.select(g.compare(Op::Ne, v, v), quiet, rounded));
}

}  // namespace

DType storage_node_type(DType s) {
  if (s == DType::F16 || s == DType::BF16) return DType::U16;
  if (s == DType::Bool) return DType::U8;
  return traits(s).component;
}

int convert(Graph& g, int v, DType to) {
  DType from = g.type(v);
  if (from == to) return v;
  if (to == DType::Bool) return g.compare(Op::Ne, v, g.integer(from, 0));
  if (is_float(from) && is_integral(to)) return float_to_int(g, v, to);
  return g.op(Op::Convert, to, v);
}

int from_storage(Graph& g, int v, DType storage) {
  if (storage == DType::F16) return g.portable ? widen_half(g, v) : g.op(Op::WidenHalf, DType::F32, v);
  if (storage == DType::BF16) return bf16_to_f32(g, v);
  if (storage == DType::Bool) return convert(g, v, DType::Bool);
  return v;
}

int to_storage(Graph& g, int v, DType storage) {
  if (storage == DType::F16) {
    v = convert(g, v, DType::F32);
    return g.portable ? narrow_half(g, v) : g.op(Op::NarrowHalf, DType::U16, v);
  }
  if (storage == DType::BF16) return f32_to_bf16(g, convert(g, v, DType::F32));
  if (storage == DType::Bool) return convert(g, convert(g, v, DType::Bool), DType::U8);
  return convert(g, v, traits(storage).component);
}

}  // namespace strata::lower
