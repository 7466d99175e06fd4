#include "lower/fuzz/mutate.h"

#include <algorithm>
#include <bit>

namespace strata::lower::fuzz {
namespace {

bool is(const Nest& n, int v, Op op, DType type) {
  return v >= 0 && n.nodes[size_t(v)].op == op && n.nodes[size_t(v)].type == type;
}
int arg(const Nest& n, int v, size_t k) { return v < 0 ? -1 : n.nodes[size_t(v)].arg[k]; }
bool is_const(const Nest& n, int v, uint64_t bits) {
  return v >= 0 && n.nodes[size_t(v)].op == Op::Const && n.nodes[size_t(v)].imm == bits;
}

// All that named `old` names `now`.
void replace(Nest& n, int old, int now) {
  auto change = [&](int& v) {
    if (v == old) v = now;
  };
  for (Node& m : n.nodes)
    for (int& a : m.arg) change(a);
  for (Reduction& r : n.reductions)
    for (int* v : r.nodes()) change(*v);
  for (Carry& c : n.carries) {
    for (std::vector<int>* all : {&c.start, &c.next})
      for (int& v : *all) change(v);
    change(c.going);
  }
  for (NestStore& s : n.stores)
    for (int* v : {&s.value, &s.imaginary, &s.guard}) change(*v);
  find_dependences(n);
}

// A place of the list, chosen at random, is changed.
template <class F>
bool at_one(Random& rng, size_t count, F&& change) {
  std::vector<int> order(count);
  for (size_t k = 0; k < count; ++k) order[k] = int(k);
  std::shuffle(order.begin(), order.end(), rng);
  return std::ranges::any_of(order, change);
}

// The F32 that the U16 of a half type was rounded from; -1 where it was not.
int before_bf16(const Nest& n, int u16) {
  if (!is(n, u16, Op::Convert, DType::U16)) return -1;
  const int select = arg(n, u16, 0), nan = is(n, select, Op::Select, DType::U32) ? arg(n, select, 0) : -1;
  const int v = is(n, nan, Op::Ne, DType::Bool) ? arg(n, nan, 0) : -1;
  return v >= 0 && v == arg(n, nan, 1) && n.nodes[size_t(v)].type == DType::F32 ? v : -1;
}
int before_f16(const Nest& n, int u16) {
  if (!is(n, u16, Op::Convert, DType::U16) || !is(n, arg(n, u16, 0), Op::Or, DType::U32)) return -1;
  const int sign = arg(n, arg(n, u16, 0), 1);
  if (!is(n, sign, Op::And, DType::U32) || !is(n, arg(n, sign, 0), Op::Shr, DType::U32)) return -1;
  const int bits = arg(n, arg(n, sign, 0), 0);
  return is(n, bits, Op::Bitcast, DType::U32) && n.nodes[size_t(arg(n, bits, 0))].type == DType::F32 ? arg(n, bits, 0)
                                                                                                     : -1;
}

bool drop_rounding(Random& rng, Nest& n) {
  return at_one(rng, n.nodes.size(), [&](int v) {
    if (is(n, v, Op::Convert, DType::F64) && is(n, arg(n, v, 0), Op::Convert, DType::F32)) {
      const int wide = arg(n, arg(n, v, 0), 0);
      if (n.nodes[size_t(wide)].type != DType::F64) return false;
      replace(n, v, wide);
      return true;
    }
    if (!is(n, v, Op::Bitcast, DType::F32)) return false;
    const int bits = arg(n, v, 0);
    int half = -1;
    if (is(n, bits, Op::Shl, DType::U32) && is_const(n, arg(n, bits, 1), 16)) half = arg(n, bits, 0);
    if (is(n, bits, Op::Or, DType::U32) && is(n, arg(n, bits, 1), Op::Shl, DType::U32) &&
        is(n, arg(n, arg(n, bits, 1), 0), Op::And, DType::U32))
      half = arg(n, arg(n, arg(n, bits, 1), 0), 0);
    if (!is(n, half, Op::Convert, DType::U32)) return false;
    half = arg(n, half, 0);
    const int guarded = is(n, half, Op::Select, DType::U16) ? half : -1;
    if (guarded >= 0) half = arg(n, guarded, 1);
    const int bf16 = before_bf16(n, half), exact = bf16 >= 0 ? bf16 : before_f16(n, half);
    if (exact < 0) return false;
    if (guarded < 0) {
      replace(n, v, exact);
      return true;
    }
    for (int zero = 0; zero < v; ++zero)
      if (is(n, zero, Op::Const, DType::F32) && is_const(n, zero, 0)) {
        n.nodes[size_t(v)] = {Op::Select, DType::F32, {arg(n, guarded, 0), exact, zero}};
        return true;
      }
    return false;
  });
}

// A read is no longer guarded, nor what hangs on its guard.
bool drop_guard(Random& rng, Nest& n) {
  return at_one(rng, n.nodes.size(), [&](int v) {
    if (n.nodes[size_t(v)].op != Op::At || arg(n, v, 1) < 0) return false;
    const int guard = arg(n, v, 1);
    for (Node& m : n.nodes)
      if (m.op == Op::At && m.arg[1] == guard) m.arg[1] = -1;
    for (int s = int(n.nodes.size()) - 1; s >= 0; --s)
      if (n.nodes[size_t(s)].op == Op::Select && arg(n, s, 0) == guard) replace(n, s, arg(n, s, 1));
    for (Reduction& r : n.reductions)
      if (r.guard == guard) r.guard = -1;
    find_dependences(n);
    return true;
  });
}

bool drop_check(Random& rng, Nest& n) {
  return at_one(rng, n.nodes.size(), [&](int v) {
    if (n.nodes[size_t(v)].op != Op::Check) return false;
    replace(n, v, arg(n, v, 0));
    return true;
  });
}

// An integer that was stored as a narrower one keeps its bits.
bool drop_narrowing(Random& rng, Nest& n) {
  return at_one(rng, n.nodes.size(), [&](int v) {
    const int narrow = n.nodes[size_t(v)].op == Op::Convert ? arg(n, v, 0) : -1;
    if (narrow < 0 || n.nodes[size_t(narrow)].op != Op::Convert) return false;
    const DType from = n.nodes[size_t(arg(n, narrow, 0))].type, to = n.nodes[size_t(narrow)].type;
    if (!is_integral(from) || !is_integral(to) || itemsize(to) >= itemsize(from)) return false;
    if (before_bf16(n, narrow) >= 0 || before_f16(n, narrow) >= 0) return false;  // their bits are 16 already
    n.nodes[size_t(v)].arg[0] = arg(n, narrow, 0);
    return true;
  });
}

bool sums_by_tree(const Reduction& r) {
  return (r.combine == Combine::Add || r.combine == Combine::Mul) && is_float(r.accumulator) && !r.sequence &&
         !r.multiplies();
}

bool no_tree(Random& rng, Nest& n) {
  return at_one(rng, n.reductions.size(), [&](int k) {
    if (!sums_by_tree(n.reductions[size_t(k)])) return false;
    n.reductions[size_t(k)].sequence = true;
    return true;
  });
}

// A reduction that a dim is missing from runs over another one, of the same size or not: what a captured index is.
bool capture(Random& rng, Nest& n) {
  return at_one(rng, n.nodes.size(), [&](int v) {
    if (n.nodes[size_t(v)].op != Op::Range) return false;
    uint64_t bound = 0;
    for (const Reduction& r : n.reductions) bound |= r.over;
    const uint64_t loops = n.loops();
    if (!(bound >> n.nodes[size_t(v)].imm & 1) || !loops) return false;
    for (int other = 0; other < v; ++other)
      if (n.nodes[size_t(other)].op == Op::Range && loops >> n.nodes[size_t(other)].imm & 1) {
        replace(n, v, other);
        return true;
      }
    return false;
  });
}

bool has_tree(Random&, Nest& n) { return std::ranges::any_of(n.reductions, sums_by_tree); }

bool has_chain(Random&, Nest& n) {
  return std::ranges::any_of(n.reductions,
                             [](const Reduction& r) { return r.multiplies() && is_float(r.accumulator); });
}

bool has_scan(Random&, Nest& n) {
  return std::ranges::any_of(n.carries, [](const Carry& c) { return c.kind == Carry::Blocks; });
}

// What a loop hands on stays as it began.
bool stays(Random& rng, Nest& n) {
  return at_one(rng, n.carries.size(), [&](int k) {
    Carry& c = n.carries[size_t(k)];
    if (c.kind == Carry::Blocks) return false;
    c.next.back() = c.start.back();
    find_dependences(n);
    return true;
  });
}

Change text_change(const char* from, const char* to) {
  return [=](std::string& text) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += std::string(to).size())
      text.replace(at, std::string(from).size(), to);
  };
}

}  // namespace

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all = {
      {"a rounding", drop_rounding},
      {"a guard", drop_guard},
      {"a check", drop_check},
      {"a narrowing", drop_narrowing},
      {"a fold, for a sequence", no_tree},
      {"a reduction's own index", capture},
      {"a fold level", has_tree, text_change("bit < 10", "bit < 9")},
      {"a chain's length", has_chain, text_change("++used & 1023", "++used & 511")},
      {"what a turn changes", stays},
      {"a scan's block", has_scan, text_change("& 1023)\n", "& 511)\n")},
      {"a boundary of chunks", has_tree, text_change("++used == 65536", "++used == 32768")},
  };
  return all;
}

}  // namespace strata::lower::fuzz
