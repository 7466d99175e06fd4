#include "lower/pass/inner_loop.h"

#include <algorithm>
#include <map>

namespace strata::lower {
namespace {

constexpr int kMostCuts = 3;  // on the way to one piece

bool compares(const Node& n) { return n.op == Op::Lt || n.op == Op::Le || n.op == Op::Gt || n.op == Op::Ge; }

}  // namespace

InnerLoop::InnerLoop(Nest& nest, int range, std::vector<int> roots)
    : nest_(nest), range_(range), stores_(false), roots_(std::move(roots)) {
  start();
}

InnerLoop::InnerLoop(Nest& nest, int range) : nest_(nest), range_(range), stores_(true) {
  for (const NestStore& s : nest.stores)
    for (int v : {s.offset, s.value, s.imaginary, s.guard})
      if (v >= 0) roots_.push_back(v);
  start();
}

void InnerLoop::start() {
  std::vector<char> in(nest_.nodes.size(), 0);
  for (int r : roots_) in[size_t(r)] = 1;
  for (size_t v = in.size(); v-- > 0;) {
    const Node& n = nest_.nodes[v];
    if (!in[v]) continue;
    if (n.op == Op::Check || (n.op == Op::Call && n.takes_status())) status_.push_back(int(v));
    for (int a : n.arg)
      if (a >= 0) in[size_t(a)] = 1;
  }
  std::reverse(status_.begin(), status_.end());
  no_ = constant(DType::Bool, 0);
  yes_ = constant(DType::Bool, 1);
  cut({}, 0);
}

int InnerLoop::constant(DType type, uint64_t bits) {
  for (size_t v = 0; v < nest_.nodes.size(); ++v)
    if (const Node& n = nest_.nodes[v]; n.op == Op::Const && n.type == type && n.imm == bits) return int(v);
  nest_.nodes.push_back({Op::Const, type, {-1, -1, -1}, bits});
  nest_.depends.push_back(0);
  return int(nest_.nodes.size()) - 1;
}

// A node of values that the loop leaves alone.
int InnerLoop::add(Op op, DType type, int a, int b) {
  auto is = [&](int v, uint64_t bits) { return nest_.nodes[v].op == Op::Const && nest_.nodes[v].imm == bits; };
  if (op == Op::Add && is(a, 0)) return b;
  if ((op == Op::Add || op == Op::Sub) && is(b, 0)) return a;
  if (op == Op::Mul && (is(a, 0) || is(b, 1))) return a;
  if (op == Op::Mul && (is(b, 0) || is(a, 1))) return b;
  for (size_t v = 0; v < nest_.nodes.size(); ++v)
    if (const Node& n = nest_.nodes[v]; n.op == op && n.type == type && n.arg[0] == a && n.arg[1] == b) return int(v);
  nest_.nodes.push_back({op, type, {a, b, -1}});
  nest_.depends.push_back(nest_.depends[a] | (b >= 0 ? nest_.depends[b] : 0));
  return int(nest_.nodes.size()) - 1;
}

// start + sign * factor * index, of integers.
InnerLoop::Linear InnerLoop::linear(int v, const std::vector<int>& same) {
  v = same[size_t(v)];
  if (!varies(v)) return {true, v, 0, -1};
  const Node n = nest_.nodes[v];
  if (n.type != DType::I64) return {false, -1, 0, -1};
  if (n.op == Op::Range) return {true, constant(DType::I64, 0), 1, -1};
  if (n.op != Op::Add && n.op != Op::Sub && n.op != Op::Mul) return {false, -1, 0, -1};
  const Linear a = linear(n.arg[0], same), b = linear(n.arg[1], same);
  if (!a.known || !b.known || (a.sign && b.sign)) return {false, -1, 0, -1};
  const Linear& moving = a.sign ? a : b;
  if (n.op != Op::Mul) {
    const int sign = n.op == Op::Sub && b.sign ? -b.sign : moving.sign;
    return {true, add(n.op, DType::I64, a.start, b.start), sign, moving.factor};
  }
  const int other = a.sign ? b.start : a.start;
  if (const Node& by = nest_.nodes[size_t(other)]; by.op == Op::Const) {
    if (int64_t(by.imm) < 0) return {false, -1, 0, -1};
    if (by.imm == 1) return moving;
  }
  const int factor = moving.factor < 0 ? other : add(Op::Mul, DType::I64, moving.factor, other);
  return {true, add(Op::Mul, DType::I64, a.start, b.start), moving.sign, factor};
}

// What the known conditions make of the nodes that hang on them.
void InnerLoop::choose(InnerPiece& piece) const {
  std::vector<int>& same = piece.same;
  same.resize(nest_.nodes.size());
  for (int v = 0; v < int(same.size()); ++v) {
    const Node& n = nest_.nodes[size_t(v)];
    auto arg = [&](int k) { return same[size_t(n.arg[size_t(k)])]; };
    same[size_t(v)] = v;
    int& now = same[size_t(v)];
    if (auto found = known_.find(v); found != known_.end()) {
      now = found->second ? yes_ : no_;
    } else if (n.op == Op::And && n.type == DType::Bool) {
      if (arg(0) == no_ || arg(1) == no_)
        now = no_;
      else if (arg(0) == yes_)
        now = arg(1);
      else if (arg(1) == yes_)
        now = arg(0);
    } else if (n.op == Op::Or && n.type == DType::Bool) {
      if (arg(0) == yes_ || arg(1) == yes_)
        now = yes_;
      else if (arg(0) == no_)
        now = arg(1);
      else if (arg(1) == no_)
        now = arg(0);
    } else if (n.op == Op::Not && (arg(0) == yes_ || arg(0) == no_)) {
      now = arg(0) == yes_ ? no_ : yes_;
    } else if (n.op == Op::Select || n.op == Op::Rare) {
      if (arg(0) == yes_)
        now = arg(1);
      else if (arg(0) == no_)
        now = arg(2);
    } else if (n.op == Op::Check && arg(0) == yes_) {
      now = yes_;
    } else if (compares(n)) {  // a choice may have left numbers: -1 >= 0
      const Node &a = nest_.nodes[size_t(arg(0))], &b = nest_.nodes[size_t(arg(1))];
      if (a.op != Op::Const || b.op != Op::Const || a.type != DType::I64) continue;
      const int64_t x = int64_t(a.imm), y = int64_t(b.imm);
      now = (n.op == Op::Lt ? x < y : n.op == Op::Le ? x <= y : n.op == Op::Gt ? x > y : x >= y) ? yes_ : no_;
    }
  }
}

std::vector<char> InnerLoop::live(const InnerPiece& piece) const {
  std::vector<char> in(nest_.nodes.size(), 0);
  auto mark = [&](int v) {
    if (v >= 0) in[size_t(piece.same[size_t(v)])] = 1;
  };
  for (int r : roots_) mark(r);
  for (size_t v = in.size(); v-- > 0;)
    if (in[v])
      for (int a : nest_.nodes[v].arg) mark(a);
  return in;
}

// Of the nodes that are live, the conditions that say whether or where something is read, and those that choose between
// values which the loop leaves alone, so that each piece is a fill; a choice between values that are computed anyway is
// as cheap as a loop of its own.
std::vector<char> InnerLoop::choosing(const std::vector<char>& in, const InnerPiece& piece) const {
  const size_t count = in.size();
  std::vector<char> reads(count, 0), below(count, 0);  // above some read, below one or below such a choice
  for (size_t v = 0; v < count; ++v) {
    const Node& n = nest_.nodes[v];
    reads[v] = n.op == Op::At;
    for (int a : n.arg)
      if (a >= 0) reads[v] |= reads[size_t(piece.same[size_t(a)])];
  }
  for (size_t v = count; v-- > 0;) {
    if (!in[v]) continue;
    const Node& n = nest_.nodes[v];
    for (size_t k = 0; k < n.arg.size(); ++k) {
      if (n.arg[k] < 0) continue;
      const size_t a = size_t(piece.same[size_t(n.arg[k])]);
      const bool selects = (n.op == Op::Select || n.op == Op::Rare) && k == 0;
      const bool fills = selects && !varies(piece.same[size_t(n.arg[1])]) && !varies(piece.same[size_t(n.arg[2])]);
      const bool chooses = fills || (selects && reads[v]);
      below[a] |= below[v] || n.op == Op::At || chooses;
    }
  }
  for (size_t v = 0; v < count; ++v) below[v] &= in[v];
  return below;
}

void InnerLoop::cut(InnerPiece piece, int depth) {
  choose(piece);
  if (depth < kMostCuts) {
    const std::vector<char> in = choosing(live(piece), piece);
    const size_t count = nest_.nodes.size();
    for (size_t v = 0; v < count; ++v)
      if (in[v] && compares(nest_.nodes[v]) && varies(int(v)) && cut_at(int(v), piece, depth)) return;
  }
  finish(std::move(piece));
}

// Where both sides of a comparison are linear and one of them moves: start_a + factor * index < start_b, or with a
// minus, or the other way round.
bool InnerLoop::cut_at(int condition, const InnerPiece& piece, int depth) {
  const Node n = nest_.nodes[size_t(condition)];
  const Linear a = linear(n.arg[0], piece.same), b = linear(n.arg[1], piece.same);
  if (!a.known || !b.known || (a.sign != 0) == (b.sign != 0)) return false;
  const bool left = a.sign != 0, minus = (left ? a.sign : b.sign) < 0;
  int limit = left ? add(Op::Sub, DType::I64, b.start, a.start) : add(Op::Sub, DType::I64, a.start, b.start);
  if (minus) limit = add(Op::Sub, DType::I64, constant(DType::I64, 0), limit);
  bool below = n.op == Op::Lt || n.op == Op::Le;
  const bool equal = n.op == Op::Le || n.op == Op::Ge;
  if (left == minus) below = !below;
  // "Below or equal" and "above" change behind the limit.
  if (below == equal) limit = add(Op::Add, DType::I64, limit, constant(DType::I64, 1));
  for (bool holds : {true, false}) {
    InnerPiece part = piece;
    part.limits.push_back({limit, (left ? a : b).factor, below == holds});
    known_[condition] = holds;
    cut(std::move(part), depth + 1);
    known_.erase(condition);
  }
  return true;
}

// Of a division it is the divisor that is checked, where the quotient would be.
void InnerLoop::report(InnerPiece& piece, const std::vector<char>& live) {
  for (int v : status_) {
    const Node n = nest_.nodes[size_t(v)];
    if (live[size_t(v)] || piece.same[size_t(v)] != v) continue;
    if (n.op == Op::Check) {
      piece.reports.push_back(v);
      continue;
    }
    int divides = add(Op::Ne, DType::Bool, n.arg[1], constant(n.type, 0));
    uint64_t depends = nest_.depends[size_t(v)];
    if (varies(v) && !varies(n.arg[1])) {  // known before the loop, if that has turns
      nest_.nodes.push_back({Op::Extent, DType::I64, {-1, -1, -1}, uint64_t(range_)});
      nest_.depends.push_back(0);
      const int none = add(Op::Eq, DType::Bool, int(nest_.nodes.size()) - 1, constant(DType::I64, 0));
      divides = add(Op::Or, DType::Bool, divides, none);
      depends = nest_.depends[size_t(divides)];
    }
    nest_.nodes.push_back({Op::Check, DType::Bool, {divides, -1, -1}, 1});
    nest_.depends.push_back(depends);
    piece.reports.push_back(int(nest_.nodes.size()) - 1);
  }
}

void InnerLoop::finish(InnerPiece piece) {
  const std::vector<char> in = live(piece);
  auto step = [&](int offset, std::map<int, InnerStep>& steps, int of) {
    const Linear at = linear(offset, piece.same);
    if (!at.known || at.sign == 0) return;
    steps[of] = {at.start, at.sign, at.factor};
    if (at.factor < 0 || nest_.nodes[size_t(at.factor)].op != Op::Stride) return;
    if (std::find(strides_.begin(), strides_.end(), at.factor) == strides_.end()) strides_.push_back(at.factor);
  };
  for (size_t v = 0; v < in.size(); ++v)
    if (in[v] && nest_.nodes[v].op == Op::At && varies(int(v))) step(nest_.nodes[v].arg[0], piece.reads, int(v));
  for (size_t s = 0; stores_ && s < nest_.stores.size(); ++s) step(nest_.stores[s].offset, piece.writes, int(s));
  report(piece, in);
  pieces_.push_back(std::move(piece));
}

}  // namespace strata::lower
