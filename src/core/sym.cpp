#include "core/sym.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace strata {
namespace {

int64_t apply(SymOp op, int64_t a, int64_t b) {
  switch (op) {
    case SymOp::Add:
      return checked_add(a, b, "size");
    case SymOp::Sub:
      STRATA_CHECK(b != INT64_MIN, "size: ", a, " - ", b, " does not fit in 64 bits; use smaller sizes");
      return checked_add(a, -b, "size");
    case SymOp::Mul:
      return checked_mul(a, b, "size");
    case SymOp::Min:
      return smaller(a, b);
    case SymOp::Max:
      return larger(a, b);
    default:
      break;
  }
  STRATA_CHECK(b != 0, "size: division of ", a, " by zero");
  STRATA_CHECK(a != INT64_MIN || b != -1, "size: ", a, " / ", b, " does not fit in 64 bits; use smaller sizes");
  return op == SymOp::Div ? a / b : op == SymOp::FloorDiv ? floor_div(a, b) : floor_mod(a, b);
}

// How tightly an expression binds in text.
int level(SymOp op) {
  switch (op) {
    case SymOp::Add:
    case SymOp::Sub:
      return 1;
    case SymOp::Mul:
    case SymOp::FloorDiv:
    case SymOp::FloorMod:
      return 2;
    default:
      return 3;
  }
}

const char* name_of(SymOp op) {
  constexpr const char* names[] = {"", " + ", " - ", " * ", "tdiv", " // ", " % ", "min", "max"};
  return names[int(op)];
}

thread_local SymContext* current_context = nullptr;

bool same(const SymGuard& x, const SymGuard& y) { return x.kind == y.kind && x.text() == y.text(); }

}  // namespace

SymInt SymContext::variable(std::string name, int64_t hint) {
  nodes_.push_back({this, SymOp::Variable, SymInt(variables_++), SymInt(), std::move(name)});
  return {hint, &nodes_.back()};
}

SymInt SymContext::unknown(std::string name, const SymInt& low, const std::optional<SymInt>& high) {
  const SymInt of = variable(std::move(name), high ? high->hint() : checked_add(low.hint(), 1, "size"));
  bounds_.push_back({of, low, high});
  return of;
}

SymContext& SymContext::current(const char* op) {
  STRATA_CHECK(current_context, op, ": the size of the result depends on values, and no context of symbols is open");
  return *current_context;
}

SymContext::Scope::Scope(SymContext& context) : before_(std::exchange(current_context, &context)) {}
SymContext::Scope::~Scope() { current_context = before_; }

SymInt SymContext::make(SymOp op, const SymInt& a, const SymInt& b) {
  const int64_t hint = apply(op, a.hint_, b.hint_);
  if (!a.node_ && !b.node_) return SymInt(hint);
  STRATA_INTERNAL(!a.node_ || !b.node_ || a.node_->context == b.node_->context, "sizes of two contexts meet");
  const bool adds = op == SymOp::Add || op == SymOp::Sub, times = op == SymOp::Mul;
  const bool divides = op == SymOp::Div || op == SymOp::FloorDiv;
  if (!b.node_ && ((adds && b.hint_ == 0) || ((times || divides) && b.hint_ == 1))) return a;
  if (!a.node_ && ((op == SymOp::Add && a.hint_ == 0) || (times && a.hint_ == 1))) return b;
  if (times && ((!a.node_ && a.hint_ == 0) || (!b.node_ && b.hint_ == 0))) return SymInt(0);
  SymContext* context = (a.node_ ? a.node_ : b.node_)->context;
  context->nodes_.push_back({context, op, a, b});
  return {hint, &context->nodes_.back()};
}

bool SymContext::decide(SymGuard::Kind kind, const SymInt& a, const SymInt& b) {
  const bool answer = kind == SymGuard::Less ? a.hint_ < b.hint_ : a.hint_ == b.hint_;
  if (a.node_ == b.node_ && (a.node_ || b.node_)) return answer;
  if (!a.node_ && !b.node_) return answer;
  SymContext* context = (a.node_ ? a.node_ : b.node_)->context;
  STRATA_INTERNAL(!a.node_ || !b.node_ || a.node_->context == b.node_->context, "sizes of two contexts meet");
  SymGuard guard{answer ? kind : kind == SymGuard::Less ? SymGuard::NotLess : SymGuard::NotEqual, a, b};
  for (const SymGuard& g : context->guards_)
    if (same(g, guard)) return answer;
  context->guards_.push_back(guard);
  return answer;
}

int64_t SymContext::evaluate(const SymInt& of, ArrayRef<int64_t> values) {
  if (!of.node_) return of.hint_;
  const SymNode& n = *of.node_;
  if (n.op == SymOp::Variable) {
    STRATA_INTERNAL(size_t(n.a.hint_) < values.size(), "no value for ", n.name);
    return values[size_t(n.a.hint_)];
  }
  return apply(n.op, evaluate(n.a, values), evaluate(n.b, values));
}

bool SymContext::holds(ArrayRef<int64_t> values) const {
  for (const SymGuard& g : guards_) {
    const int64_t a = evaluate(g.a, values), b = evaluate(g.b, values);
    const bool less = g.kind == SymGuard::Less || g.kind == SymGuard::NotLess;
    const bool wanted = g.kind == SymGuard::Less || g.kind == SymGuard::Equal;
    if ((less ? a < b : a == b) != wanted) return false;
  }
  return true;
}

std::string SymInt::text() const {
  if (!node_) return std::to_string(hint_);
  const SymNode& n = *node_;
  if (n.op == SymOp::Variable) return n.name;
  const int own = level(n.op);
  if (own == 3) return name_of(n.op) + ("(" + n.a.text() + ", " + n.b.text() + ")");
  auto part = [own](const SymInt& s, bool right) {
    const bool plain = !s.node_ ? s.hint_ >= 0 : level(s.node_->op) > own || (level(s.node_->op) == own && !right);
    return plain ? s.text() : "(" + s.text() + ")";
  };
  return part(n.a, false) + name_of(n.op) + part(n.b, true);
}

std::string SymGuard::text() const {
  constexpr const char* words[] = {" < ", " >= ", " == ", " != "};
  return a.text() + words[kind] + b.text();
}

std::ostream& operator<<(std::ostream& out, const SymInt& s) {
  out << s.text();
  return s.is_symbolic() ? out << " (" << s.hint() << ")" : out;
}

}  // namespace strata
