// Types, promotion, operators and the inlining of functions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "lower/expr/build.h"
#include "lower/expr/types.h"

namespace strata::lower {
namespace {

DType component_of(const Graph& g, const Value& v) { return g.type(v.re); }

bool is_comparison(const std::string& op) {
  return op == "==" || op == "!=" || op == "<" || op == "<=" || op == ">" || op == ">=";
}

Op op_of(const std::string& s) {
  static const std::map<std::string, Op> ops = {
      {"+", Op::Add}, {"-", Op::Sub}, {"*", Op::Mul}, {"/", Op::Div}, {"&", Op::And}, {"|", Op::Or}, {"^", Op::Xor},
      {"==", Op::Eq}, {"!=", Op::Ne}, {"<", Op::Lt},  {"<=", Op::Le}, {">", Op::Gt},  {">=", Op::Ge}};
  return ops.at(s);
}

// Numbers among themselves: integers as int64, others in double; false if the operation needs types.
bool fold_numbers(const std::string& op, const Literal& a, const Literal& b, bool integers, Literal& out) {
  if (a.is_int && b.is_int) {
    uint64_t x = uint64_t(a.i), y = uint64_t(b.i);
    if (op == "+") return out = int_literal(int64_t(x + y)), true;
    if (op == "-") return out = int_literal(int64_t(x - y)), true;
    if (op == "*") return out = int_literal(int64_t(x * y)), true;
    if (op == "&") return out = int_literal(int64_t(x & y)), true;
    if (op == "|") return out = int_literal(int64_t(x | y)), true;
    if (op == "^") return out = int_literal(int64_t(x ^ y)), true;
    if (op == "<<" && y < 64) return out = int_literal(int64_t(x << y)), true;
    if (op == ">>" && y < 64) return out = int_literal(a.i >> y), true;
    if (op == "/" && b.i != 0 && b.i != -1 && (integers || a.i % b.i == 0)) return out = int_literal(a.i / b.i), true;
  }
  if (op == "+") return out = real_literal(a.d + b.d), true;
  if (op == "-") return out = real_literal(a.d - b.d), true;
  if (op == "*") return out = real_literal(a.d * b.d), true;
  if (op == "/" && !(a.is_int && b.is_int && integers)) return out = real_literal(a.d / b.d), true;
  return false;
}

}  // namespace

DType Builder::number_type() const {
  DType t = traits(context_).component;
  return t == DType::Bool ? DType::I32 : t;
}

DType Builder::type_of(const Value& v) const {
  if (v.kind == Value::Real) return g.type(v.re);
  if (v.kind == Value::Complex) return component_of(g, v) == DType::F64 ? DType::C128 : DType::C64;
  return v.number.is_int || is_float(number_type()) ? number_type() : DType::F32;
}

DType Builder::join(const Value& a, const Value& b) const {
  if (a.kind == Value::Number && b.kind == Value::Number) {
    DType t = type_of(a), u = type_of(b);
    return is_float(u) ? u : t;
  }
  if (a.kind == Value::Number || b.kind == Value::Number) {
    const Value &n = a.kind == Value::Number ? a : b, &v = a.kind == Value::Number ? b : a;
    DType t = type_of(v);
    if (is_integral(t, true) && !n.number.is_int) return type_of(n);
    return t == DType::Bool ? number_type() : t;
  }
  DType t = type_of(a), u = type_of(b);
  if (is_complex(t) || is_complex(u)) {
    bool wide = t == DType::C128 || u == DType::C128 || t == DType::F64 || u == DType::F64;
    return wide ? DType::C128 : DType::C64;
  }
  if (t == DType::Bool && u == DType::Bool) return number_type();
  if (t == u || u == DType::Bool) return t;
  if (t == DType::Bool) return u;
  if (is_float(t) != is_float(u)) return is_float(t) ? t : u;
  if (traits(t).bits != traits(u).bits) return traits(t).bits > traits(u).bits ? t : u;
  return traits(t).kind == DKind::Unsigned ? t : u;
}

Value Builder::cast(const Value& v, DType to) {
  if (is_complex(to)) {
    DType part = traits(to).component;
    if (v.kind == Value::Complex) return pair(convert(g, v.re, part), convert(g, v.im, part));
    return pair(cast(v, part).re, g.real(part, 0));
  }
  if (v.kind == Value::Complex) {
    if (to != DType::Bool) return real(convert(g, v.re, to));
    return real(g.op(Op::Or, DType::Bool, convert(g, v.re, to), convert(g, v.im, to)));
  }
  if (v.kind == Value::Real) return real(convert(g, v.re, to));
  const Literal& n = v.number;
  if (to == DType::F32) return real(g.real(to, double(n.f)));
  if (to == DType::F64) return real(g.real(to, n.d));
  if (to == DType::Bool) return real(g.integer(to, n.d != 0));
  return real(n.is_int ? g.integer(to, n.i) : convert(g, g.real(DType::F64, n.d), to));
}

int Builder::node(const Value& v) {
  if (v.kind == Value::Complex) fail(nullptr, "expected a real number, got a complex one");
  return v.kind == Value::Number ? cast(v, type_of(v)).re : v.re;
}

int Builder::condition(const Value& v) { return cast(v, DType::Bool).re; }

DType Builder::float_type(const Value& v) const {
  DType t = traits(type_of(v)).component;
  if (is_float(t)) return t;
  return is_float(number_type()) ? number_type() : DType::F32;
}

void Builder::name(const Value& v, const std::string& n) {
  if (n.empty()) return;
  bool own = path_.empty();
  if (v.kind == Value::Real) g.name(v.re, n, own);
  if (v.kind == Value::Complex) {
    g.name(v.re, n + "_re", own);
    g.name(v.im, n + "_im", own);
  }
}

Value Builder::select(int c, const Value& a, const Value& b, Op op) {
  DType t = a.kind != Value::Number && b.kind != Value::Number && type_of(a) == type_of(b) ? type_of(a) : join(a, b);
  Value x = cast(a, t), y = cast(b, t);
  DType part = g.type(x.re);
  if (x.kind == Value::Complex) return pair(g.op(op, part, c, x.re, y.re), g.op(op, part, c, x.im, y.im));
  return real(g.op(op, part, c, x.re, y.re));
}

Value Builder::binary(const std::string& op, const Value& a, const Value& b) {
  if (op == "&&" || op == "||")
    return real(g.op(op == "&&" ? Op::And : Op::Or, DType::Bool, condition(a), condition(b)));
  if (a.kind == Value::Number && b.kind == Value::Number) {
    Literal folded;
    if (fold_numbers(op, a.number, b.number, !is_float(number_type()), folded)) return number(folded);
  }
  bool bits = op == "&" || op == "|" || op == "^";
  if (op == "<<" || op == ">>") return shift(op, a, b);
  bool bools = a.kind == Value::Real && b.kind == Value::Real && type_of(a) == DType::Bool && type_of(b) == DType::Bool;
  if (bools && (bits || op == "==" || op == "!=")) {
    int r = g.op(bits ? op_of(op) : Op::Xor, DType::Bool, a.re, b.re);
    return real(op == "==" ? g.op(Op::Not, DType::Bool, r) : r);
  }
  DType t = join(a, b);
  if (is_complex(t)) return complex_binary(op, cast(a, t), cast(b, t));
  int x = cast(a, t).re, y = cast(b, t).re;
  if (is_comparison(op)) return real(g.compare(op_of(op), x, y));
  if (bits && is_float(t)) fail(nullptr, "operator '" + op + "' takes integers or bools, got " + type_name(t));
  if (op == "%") return divide("fmod", real(x), real(y));
  if (op == "/" && !is_float(t)) return divide("truncdiv", real(x), real(y));
  return real(g.bin(op_of(op), x, y));
}

// The largest value that an integer can have by what made it from constants, where that is plain.
std::optional<uint64_t> Builder::largest(int v) const {
  const Node& n = g.node(v);
  if (n.op == Op::Const) return n.imm;
  if (n.op == Op::And)
    for (int a : {n.arg[0], n.arg[1]})
      if (g.node(a).op == Op::Const) return g.node(a).imm;
  if (n.op == Op::Convert && is_integral(g.type(n.arg[0]))) return largest(n.arg[0]);
  if (n.op == Op::Sub && g.node(n.arg[0]).op == Op::Const)
    if (const auto less = largest(n.arg[1]); less && *less <= g.node(n.arg[0]).imm) return g.node(n.arg[0]).imm;
  return std::nullopt;
}

// Total: an amount outside [0, width) shifts everything out.
Value Builder::shift(const std::string& op, const Value& a, const Value& b) {
  DType t = type_of(a), u = type_of(b);
  if (a.kind == Value::Number && a.number.is_int) t = u;
  if (b.kind == Value::Number && b.number.is_int) u = DType::I32;
  if (t == DType::Bool) t = number_type();
  if (!is_integral(t) || !is_integral(u, true))
    fail(nullptr, "operator '" + op + "' takes integers, got " + type_name(t) + " and " + type_name(u));
  int x = cast(a, t).re, y = cast(b, u).re, width = traits(t).bits;
  if (u == DType::Bool) y = convert(g, y, u = DType::I32);
  const Op shifts = op == "<<" ? Op::Shl : Op::Shr;
  if (const auto most = largest(y); most && *most < uint64_t(width)) return real(g.bin(shifts, x, convert(g, y, t)));
  int inside = g.compare(Op::Lt, y, g.integer(u, width));
  if (traits(u).kind == DKind::Signed)
    inside = g.op(Op::And, DType::Bool, inside, g.compare(Op::Ge, y, g.integer(u, 0)));
  int amount = convert(g, g.select(inside, y, g.integer(u, 0)), t);
  int out = g.integer(t, 0);
  if (op == ">>" && traits(t).kind == DKind::Signed) out = g.bin(Op::Shr, x, g.integer(t, width - 1));
  return real(g.select(inside, g.bin(shifts, x, amount), out));
}

Value Builder::unary(const std::string& op, const Value& a) {
  if (op == "!") return real(g.op(Op::Not, DType::Bool, condition(a)));
  if (op == "~") {
    DType t = type_of(a);
    if (!is_integral(t, true)) fail(nullptr, "operator '~' takes integers or bools, got " + type_name(t));
    return real(g.op(Op::Not, t, cast(a, t).re));
  }
  if (a.kind == Value::Number)
    return number(a.number.is_int ? int_literal(int64_t(0 - uint64_t(a.number.i))) : real_literal(-a.number.d));
  if (a.kind == Value::Complex) return pair(g.op(Op::Neg, g.type(a.re), a.re), g.op(Op::Neg, g.type(a.im), a.im));
  DType t = type_of(a) == DType::Bool ? number_type() : type_of(a);
  return real(g.op(Op::Neg, t, cast(a, t).re));
}

Value Builder::eval(const Expr& e) {
  // Names of dims and operands are those of the kernel's own text: a function that it calls may have the same ones.
  if (Value v; operands && path_.empty() && operands->value(*this, e, v)) return v;
  if (e.kind == Expr::Index) fail(&e, "'" + e.name + "[...]': only kernels with a space read operands at places");
  if (e.kind == Expr::Number) {
    const Literal& l = e.number;
    if (!l.is_unsigned && !l.is_long) return number(l);
    return cast(number(l), !l.is_long ? DType::U32 : l.is_unsigned ? DType::U64 : DType::I64);
  }
  if (e.kind == Expr::Name) return lookup(e);
  if (e.name == "repeat") return repeat(e);
  at_ = &e;
  Value v = call(e);
  return v;
}

Value Builder::lookup(const Expr& e) {
  if (auto at = values_.find(e.name); at != values_.end()) return at->second;
  if (e.name == "pi") return number(real_literal(3.14159265358979323846));
  if (e.name == "inf") return number(real_literal(std::numeric_limits<double>::infinity()));
  if (e.name == "nan") return number(real_literal(std::numeric_limits<double>::quiet_NaN()));
  if (e.name == "true" || e.name == "false") return real(g.integer(DType::Bool, e.name == "true"));
  if (kernel_.kind == KernelKind::Rows && (e.name == "n" || e.name == "index")) {
    int v = g.add({e.name == "n" ? Op::Length : Op::Index, DType::I64});
    return e.name == "n" ? cast(real(v), number_type()) : real(v);
  }
  fail(&e, "unknown name '" + e.name + "'; inputs, scalars and earlier lines are known");
}

DType Builder::complex_of_all(const std::vector<Value>& args) const {
  for (const Value& v : args)
    if (v.kind != Value::Number && traits(type_of(v)).component == DType::F64) return DType::C128;
  return DType::C64;
}

Value Builder::apply(const Function& f, const std::vector<Value>& args) {
  if (std::count(path_.begin(), path_.end(), f.name) > 3) fail(nullptr, f.name + " calls itself");
  std::map<std::string, Value> outer = std::move(values_);
  DType outer_context = context_;
  values_.clear();
  path_.push_back(f.name);
  for (size_t k = 0; k < args.size(); ++k) {
    Value v = args[k];
    DType t;
    if (dtype_from_word(f.params[k].type, t) || (f.params[k].type == "complex" && (t = complex_of_all(args), true)))
      v = cast(v, t);
    values_[f.params[k].name] = v;
    if (k == 0 && args[k].kind != Value::Number && !is_integral(type_of(args[k]), true)) context_ = type_of(args[k]);
  }
  Value result;
  for (const Statement& s : f.body) {
    result = eval(*s.value);
    DType t;
    if (const std::string& type = s.name.empty() ? f.type : s.type; dtype_from_word(type, t)) result = cast(result, t);
    name(result, s.name);
    values_[s.name] = result;
  }
  path_.pop_back();
  context_ = outer_context;
  values_ = std::move(outer);
  return result;
}

Value Builder::apply(const char* function, const std::vector<Value>& args) {
  Expr e;
  e.kind = Expr::Call;
  e.name = function;
  if (at_) e.line = at_->line, e.column = at_->column;
  return call(e, args);
}

}  // namespace strata::lower
