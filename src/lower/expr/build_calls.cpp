// Functions by name: the mathematics text by types, then the builtin ones, then reductions.
#include <cmath>
#include <functional>
#include <unordered_map>

#include "lower/expr/build.h"
#include "lower/expr/types.h"

namespace strata::lower {
namespace {

using Args = std::vector<Value>;
using Builtin = std::function<Value(Builder&, const Args&)>;
struct Entry {
  int args;
  Builtin make;
};

bool is_type(Builder& b, const Value& v, DKind k) { return traits(b.type_of(v)).kind == k; }

// A float operation that leaves integers as they are.
Entry rounding(Op op) {
  return {1, [op](Builder& b, const Args& a) {
            if (!is_type(b, a[0], DKind::Float)) return a[0];
            int x = b.node(a[0]);
            return Builder::real(b.g.op(op, b.g.type(x), x));
          }};
}

// Larger (or smaller) of two; `keep`: what a NaN on the left and on the right do.
Entry extremum(Op op, bool nan_wins) {
  return {2, [op, nan_wins](Builder& b, const Args& a) {
            DType t = b.join(a[0], a[1]);
            if (is_complex(t)) b.fail(nullptr, "complex numbers have no order");
            int x = b.cast(a[0], t).re, y = b.cast(a[1], t).re;
            Graph& g = b.g;
            int r = g.select(g.compare(op, x, y), x, y);
            if (!is_float(t)) return Builder::real(r);
            if (nan_wins) return Builder::real(g.select(g.compare(Op::Ne, x, x), x, r));
            return Builder::real(g.select(g.compare(Op::Ne, y, y), x, r));
          }};
}

// A predicate of floats; of a complex value: of either part (`both`: of both); of integers a constant.
Entry predicate(bool of_integer, bool both, std::function<int(Builder&, int)> test) {
  return {1, [=](Builder& b, const Args& a) {
            Graph& g = b.g;
            if (a[0].kind == Value::Complex)
              return Builder::real(g.op(both ? Op::And : Op::Or, DType::Bool, test(b, a[0].re), test(b, a[0].im)));
            int x = b.node(a[0]);
            return Builder::real(is_float(g.type(x)) ? test(b, x) : g.integer(DType::Bool, of_integer));
          }};
}

int compare_abs(Builder& b, Op op, int x) { return b.g.compare(op, b.abs(x), b.g.real(b.g.type(x), __builtin_inf())); }

Entry division(const char* name) {
  return {2, [name](Builder& b, const Args& a) { return b.divide(name, a[0], a[1]); }};
}

Value sign_of(Builder& b, const Args& a) {
  int x = b.node(a[0]);
  Graph& g = b.g;
  DType t = g.type(x);
  if (t == DType::Bool) return a[0];
  int zero = g.integer(t, 0), one = g.integer(t, 1);
  int r = g.select(g.compare(Op::Gt, x, zero), one, zero);
  if (traits(t).kind == DKind::Unsigned) return Builder::real(r);
  return Builder::real(g.select(g.compare(Op::Lt, x, zero), g.integer(t, -1), r));
}

Value copysign_of(Builder& b, const Args& a) {
  DType t = b.float_type(a[0].kind == Value::Number ? a[1] : a[0]);
  Graph& g = b.g;
  int x = b.bits(b.cast(a[0], t).re), y = b.bits(b.cast(a[1], t).re);
  DType i = g.type(x);
  int top = g.constant(i, uint64_t(1) << (traits(i).bits - 1));
  return Builder::real(b.from_bits(g.bin(Op::Or, g.bin(Op::And, x, g.op(Op::Not, i, top)), g.bin(Op::And, y, top))));
}

Value fma_of(Builder& b, const Args& a) {
  DType t = b.join(b.real(b.cast(a[0], b.join(a[0], a[1])).re), a[2]);
  if (!is_float(t)) return b.binary("+", b.binary("*", a[0], a[1]), a[2]);
  return Builder::real(b.g.op(Op::Fma, t, b.cast(a[0], t).re, b.cast(a[1], t).re, b.cast(a[2], t).re));
}

Value complex_of(Builder& b, const Args& a) {
  DType t = b.join(a[0], a[1]);
  if (!is_float(t)) t = b.float_type(a[0]);
  return Builder::pair(b.cast(a[0], t).re, b.cast(a[1], t).re);
}

Value part_of(Builder& b, const Value& v, bool imaginary) {
  if (v.kind == Value::Complex) return Builder::real(imaginary ? v.im : v.re);
  return imaginary ? Builder::number(int_literal(0)) : (b.node(v), v);
}

Value angle_of(Builder& b, const Args& a) {
  int x = b.cast(a[0], b.float_type(a[0])).re;
  Graph& g = b.g;
  DType t = g.type(x);
  int r = g.select(g.compare(Op::Lt, x, g.real(t, 0)), g.real(t, 3.14159265358979323846), g.real(t, 0));
  return Builder::real(g.select(g.compare(Op::Ne, x, x), x, r));
}

std::unordered_map<std::string, Entry> make_builtins() {
  auto choose = [](Op op) {
    return Entry{3, [op](Builder& b, const Args& a) { return b.select(b.condition(a[0]), a[1], a[2], op); }};
  };
  auto sign_bit = [](Builder& b, int x) {
    int i = b.bits(x);
    return b.g.compare(Op::Lt, i, b.g.integer(b.g.type(i), 0));
  };
  std::unordered_map<std::string, Entry> t = {
      {"sqrt",
       {1,
        [](Builder& b, const Args& a) {
          DType f = b.float_type(a[0]);
          return Builder::real(b.g.op(Op::Sqrt, f, b.cast(a[0], f).re));
        }}},
      {"floor", rounding(Op::Floor)},
      {"ceil", rounding(Op::Ceil)},
      {"trunc", rounding(Op::Trunc)},
      {"rint", rounding(Op::Rint)},
      {"select", choose(Op::Select)},
      {"where", choose(Op::Select)},
      {"rare", choose(Op::Rare)},
      {"maximum", extremum(Op::Gt, true)},
      {"minimum", extremum(Op::Lt, true)},
      {"max", extremum(Op::Gt, true)},
      {"min", extremum(Op::Lt, true)},
      {"fmax", extremum(Op::Gt, false)},
      {"fmin", extremum(Op::Lt, false)},
      {"isnan", predicate(false, false, [](Builder& b, int x) { return b.g.compare(Op::Ne, x, x); })},
      {"isinf", predicate(false, false, [](Builder& b, int x) { return compare_abs(b, Op::Eq, x); })},
      {"isfinite", predicate(true, true, [](Builder& b, int x) { return compare_abs(b, Op::Lt, x); })},
      {"signbit",
       {1,
        [sign_bit](Builder& b, const Args& a) {
          int x = b.node(a[0]);
          if (is_float(b.g.type(x))) return Builder::real(sign_bit(b, x));
          return b.binary("<", a[0], Builder::number(int_literal(0)));
        }}},
      {"sign", {1, sign_of}},
      {"copysign", {2, copysign_of}},
      {"abs", {1, [](Builder& b, const Args& a) { return Builder::real(b.abs(b.node(a[0]))); }}},
      {"fma", {3, fma_of}},
      {"bits", {1, [](Builder& b, const Args& a) { return Builder::real(b.bits(b.node(a[0]))); }}},
      {"from_bits",
       {1,
        [](Builder& b, const Args& a) {
          DType wide = b.number_type() == DType::F64 ? DType::I64 : DType::I32;
          int x = a[0].kind == Value::Number ? b.cast(a[0], wide).re : b.node(a[0]);
          return Builder::real(b.from_bits(x));
        }}},
      {"quotient",  // of integers truncated, else rounded
       {2,
        [](Builder& b, const Args& a) {
          return is_integral(b.type_of(a[0])) ? b.divide("truncdiv", a[0], a[1]) : b.binary("/", a[0], a[1]);
        }}},
      {"floordiv", division("floordiv")},
      {"truncdiv", division("truncdiv")},
      {"remainder", division("remainder")},
      {"fmod", division("fmod")},
      {"pow",
       {2,
        [](Builder& b, const Args& a) {
          DType t = b.join(a[0], a[1]);
          if (!is_integral(t)) b.fail(nullptr, "pow: the mathematics text has none for " + type_name(t));
          Node n{Op::Call, t, {b.cast(a[0], t).re, b.cast(a[1], t).re, -1}, uint64_t(Helper::Pow)};
          return Builder::real(b.g.add(n));
        }}},
      {"complex", {2, complex_of}},
      {"real", {1, [](Builder& b, const Args& a) { return part_of(b, a[0], false); }}},
      {"imag", {1, [](Builder& b, const Args& a) { return part_of(b, a[0], true); }}},
      {"conj",
       {1,
        [](Builder& b, const Args& a) {
          if (a[0].kind != Value::Complex) return a[0];
          return Builder::pair(a[0].re, b.g.op(Op::Neg, b.g.type(a[0].im), a[0].im));
        }}},
      {"angle", {1, angle_of}},
  };
  for (const char* op :
       {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||"})
    t[op] = {2, [name = std::string(op)](Builder& b, const Args& a) { return b.binary(name, a[0], a[1]); }};
  for (const char* op : {"neg", "!", "~"})
    t[op] = {1, [name = std::string(op)](Builder& b, const Args& a) { return b.unary(name, a[0]); }};
  for (int k = 0; k < kDTypeCount; ++k) {
    DType d = DType(k);
    if (d == DType::F16 || d == DType::BF16) {  // rounds to the narrow type, goes on in float32
      Entry narrow{1, [d](Builder& b, const Args& a) {
                     return Builder::real(from_storage(b.g, to_storage(b.g, b.node(a[0]), d), d));
                   }};
      t[traits(d).cname] = t[traits(d).name] = narrow;
    } else {
      Entry convert{1, [d](Builder& b, const Args& a) { return b.cast(a[0], d); }};
      t[traits(d).cname] = t[traits(d).name] = convert;
    }
  }
  return t;
}

const Entry* builtin(const std::string& name) {
  static const auto table = make_builtins();
  auto at = table.find(name);
  return at == table.end() ? nullptr : &at->second;
}

// How well a parameter takes an argument: 0 not at all, more is better.
int match(const Builder& b, const std::string& param, const Value& v, bool with_complex) {
  if (param.empty() || param == "any") return 1;
  DType t = b.type_of(v);
  bool free = v.kind == Value::Number;
  if (param == "complex") return is_complex(t) ? 3 : with_complex ? 1 : 0;
  if (param == "real" || param == "float") return is_float(t) ? 2 : 0;
  if (param == "int") return is_integral(t) ? 2 : 0;
  DType want;
  if (!dtype_from_word(param, want)) b.fail(nullptr, "unknown type '" + param + "' in the mathematics text");
  return want == t ? 4 : free ? 2 : 0;
}

}  // namespace

std::vector<Value> Builder::eval_all(const std::vector<ExprPtr>& args) {
  std::vector<Value> out;
  out.reserve(args.size());
  for (const ExprPtr& a : args) out.push_back(eval(*a));
  return out;
}

const Function* Builder::overload(const std::string& name, const std::vector<Value>& args) const {
  const Function* best = nullptr;
  int best_score = 0;
  bool with_complex = false;  // real arguments become complex beside a complex one only
  for (const Value& v : args)
    if (v.kind == Value::Complex) with_complex = true;
  for (const Function& f : math_functions(name)) {
    if (f.params.size() != args.size()) continue;
    int score = 1;
    for (size_t k = 0; k < args.size() && score; ++k) {
      int m = match(*this, f.params[k].type, args[k], with_complex);
      score = m ? score + m : 0;
    }
    if (score > best_score) best = &f, best_score = score;
  }
  return best;
}

Value Builder::call(const Expr& e, const std::vector<Value>& args) {
  at_ = &e;
  Value out;
  if (reduction(e, args, out)) return out;
  const Function* f = overload(e.name, args);
  const Entry* entry = builtin(e.name);
  if (!f && !entry && !math_functions(e.name).empty()) {  // integers in a function of floats
    std::vector<Value> floats = args;
    for (Value& v : floats)
      if (v.kind != Value::Complex) v = cast(v, float_type(v));
    if ((f = overload(e.name, floats))) return apply(*f, floats);
  }
  if (f) return apply(*f, args);
  if (!entry) {
    std::string known;
    for (const Function& o : math_functions(e.name)) {
      known += known.empty() ? "; there is " : ", ";
      known += e.name + "(";
      for (size_t k = 0; k < o.params.size(); ++k) known += (k ? ", " : "") + o.params[k].type;
      known += ")";
    }
    fail(&e, "unknown function '" + e.name + "' of " + std::to_string(args.size()) + " arguments" + known);
  }
  if (entry->args != int(args.size()))
    fail(&e, e.name + " takes " + std::to_string(entry->args) + " arguments, got " + std::to_string(args.size()));
  return entry->make(*this, args);
}

int Builder::bits(int v) {
  DType t = g.type(v);
  if (t != DType::F32 && t != DType::F64) fail(nullptr, "bits takes a float, got " + type_name(t));
  return g.op(Op::Bitcast, t == DType::F32 ? DType::I32 : DType::I64, v);
}

int Builder::from_bits(int v) {
  DType t = g.type(v);
  if (!is_integral(t) || traits(t).bits < 32)
    fail(nullptr, "from_bits takes 32- or 64-bit integers, got " + type_name(t));
  return g.op(Op::Bitcast, traits(t).bits == 32 ? DType::F32 : DType::F64, v);
}

int Builder::abs(int v) {
  DType t = g.type(v);
  if (t == DType::Bool || traits(t).kind == DKind::Unsigned) return v;
  if (is_float(t)) {
    int b = bits(v);
    uint64_t top = uint64_t(1) << (traits(t).bits - 1);
    return from_bits(g.bin(Op::And, b, g.constant(g.type(b), top - 1)));
  }
  return g.select(g.compare(Op::Lt, v, g.integer(t, 0)), g.op(Op::Neg, t, v), v);
}

// Integers: total helpers. Floats: fmod is exact; remainder and floordiv are made of it as PyTorch does.
Value Builder::divide(const std::string& name, const Value& a, const Value& b) {
  DType t = join(a, b);
  if (is_complex(t)) fail(nullptr, name + " takes real numbers, got " + type_name(t));
  int x = cast(a, t).re, y = cast(b, t).re;
  auto helper = [&](Helper h) { return g.add({Op::Call, t, {x, y, -1}, uint64_t(h)}); };
  if (!is_float(t)) {
    static const std::unordered_map<std::string, Helper> helpers = {
        {"floordiv", Helper::FloorDiv}, {"truncdiv", Helper::Div}, {"remainder", Helper::Mod}, {"fmod", Helper::Rem}};
    return real(helper(helpers.at(name)));
  }
  if (name == "truncdiv") {  // the quotient is rounded to the tensors' dtype first, as PyTorch's is
    int q = g.bin(Op::Div, x, y);
    kernel_.rounds_inside = true;
    if (dtype_ == DType::F16 || dtype_ == DType::BF16) q = from_storage(g, to_storage(g, q, dtype_), dtype_);
    return real(g.op(Op::Trunc, t, q));
  }
  int zero = g.real(t, 0), m = -1;
  if (const Function* f = overload("fmod", {real(x), real(y)}))
    m = apply(*f, {real(x), real(y)}).re;
  else
    m = helper(Helper::Fmod);
  if (name == "fmod") return real(m);
  int nonzero = g.compare(Op::Ne, m, zero);
  int differ = g.op(Op::Xor, DType::Bool, g.compare(Op::Lt, y, zero), g.compare(Op::Lt, m, zero));
  int off = g.op(Op::And, DType::Bool, nonzero, differ);
  if (name == "remainder") return real(g.select(off, g.bin(Op::Add, m, y), m));
  int quotient = g.bin(Op::Div, g.bin(Op::Sub, x, m), y);
  quotient = g.select(off, g.bin(Op::Sub, quotient, g.real(t, 1)), quotient);
  int down = g.op(Op::Floor, t, quotient);
  down = g.select(g.compare(Op::Gt, g.bin(Op::Sub, quotient, down), g.real(t, 0.5)), g.bin(Op::Add, down, g.real(t, 1)),
                  down);
  int plain = g.bin(Op::Div, x, y);
  int signed_zero = apply("copysign", {real(zero), real(plain)}).re;
  down = g.select(g.compare(Op::Ne, quotient, zero), down, signed_zero);
  return real(g.select(g.compare(Op::Eq, y, zero), plain, down));
}

bool combine_of(const std::string& name, Combine& out) {
  static const std::unordered_map<std::string, Combine> combines = {
      {"sum", Combine::Add}, {"prod", Combine::Mul}, {"max", Combine::Max},       {"min", Combine::Min},
      {"any", Combine::Or},  {"all", Combine::And},  {"argmax", Combine::ArgMax}, {"argmin", Combine::ArgMin}};
  auto found = combines.find(name);
  if (found == combines.end()) return false;
  out = found->second;
  return true;
}

bool Builder::reduction(const Expr& e, const std::vector<Value>& args, Value& out) {
  Combine c;
  if (args.size() != 1 || !combine_of(e.name, c)) return false;
  if (kernel_.kind != KernelKind::Rows) fail(&e, e.name + " is a reduction: only kernels of kind Rows have them");
  out = reduce(e, c, args[0], {});
  return true;
}

Value Builder::reduce(const Expr& e, Combine c, Value v, Reduction how) {
  DType t = type_of(v);
  if (is_complex(t) && c != Combine::Add && c != Combine::Mul && c != Combine::Or && c != Combine::And)
    fail(&e, e.name + ": complex numbers have no order");
  DType accumulator = t;
  if (c == Combine::Or || c == Combine::And) accumulator = DType::Bool;
  if ((c == Combine::Add || c == Combine::Mul) && is_integral(t, true))
    accumulator = traits(t).kind == DKind::Unsigned ? DType::U64 : DType::I64;
  if (t == DType::Bool && c >= Combine::ArgMax) accumulator = number_type();
  if (t == DType::Bool && (c == Combine::Max || c == Combine::Min)) {
    c = c == Combine::Max ? Combine::Or : Combine::And;
  }
  v = cast(v, accumulator);
  if (accumulator == DType::Bool) v.re = convert(g, v.re, DType::U8);
  if (how.guard >= 0) {
    v.re = g.select(how.guard, v.re, identity(c, g.type(v.re)));
    if (v.im >= 0)
      v.im = g.select(how.guard, v.im, c == Combine::Mul ? g.real(g.type(v.im), 0) : identity(c, g.type(v.im)));
  }
  how.combine = c;
  how.accumulator = accumulator;
  how.value[0] = v.re;
  if (v.im >= 0) how.value[1] = v.im;
  how.name = e.name;
  // A largest value comes with its place where that is asked for, too.
  if (how.sequence && (c == Combine::Max || c == Combine::Min))
    for (const Reduction& other : g.reductions)
      if (other.combine == (c == Combine::Max ? Combine::ArgMax : Combine::ArgMin) && other.value[0] == v.re &&
          other.guard == how.guard && other.over == how.over)
        how = other;
  int r = g.reduce(how);
  auto result = [&](DType type, uint8_t part) { return g.add({Op::Reduced, type, {-1, -1, -1}, uint64_t(r), part}); };
  if (c == Combine::ArgMax || c == Combine::ArgMin) return real(result(DType::I64, 1));
  if (accumulator == DType::Bool) return real(convert(g, result(DType::U8, 0), DType::Bool));
  if (is_complex(accumulator))
    return pair(result(traits(accumulator).component, 0), result(traits(accumulator).component, 1));
  return real(result(accumulator, 0));
}

// What changes nothing: x + -0 is x, bit for bit.
int Builder::identity(Combine c, DType t) {
  const bool most = c == Combine::Min || c == Combine::ArgMin;
  switch (c) {
    case Combine::Add:
      return is_float(t) ? g.real(t, -0.0) : g.integer(t, 0);
    case Combine::Or:
      return g.integer(t, 0);
    case Combine::Mul:
    case Combine::And:
      return is_float(t) ? g.real(t, 1) : g.integer(t, 1);
    default:
      break;
  }
  if (is_float(t)) return g.real(t, most ? HUGE_VAL : -HUGE_VAL);
  const int bits = traits(t).bits;
  const uint64_t all = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  if (traits(t).kind == DKind::Unsigned) return g.constant(t, most ? all : 0);
  return g.constant(t, most ? all >> 1 : all ^ (all >> 1));
}

}  // namespace strata::lower
