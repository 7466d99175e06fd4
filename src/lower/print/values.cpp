#include "lower/print/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

namespace strata::lower {
namespace {

std::string unsigned_of(DType t) { return traits(t).bits == 64 ? "u64" : "u32"; }

}  // namespace

// Words of C, of the languages that devices speak, which are near it, and names of <math.h>.
static const char* const kWords[] = {
    "int", "long", "float", "double", "char", "short", "void", "if", "for", "do", "while", "else", "return", "const",
    "static", "signed", "unsigned", "switch", "case", "break", "auto", "enum", "struct", "union", "goto", "inline",
    "register", "restrict", "sizeof", "default", "extern", "bit", "status", "l", "h", "typedef", "volatile", "continue",
    "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "INFINITY", "NAN",
    // Words of devices' dialects of C.
    "half", "quad", "bool", "uchar", "ushort", "uint", "ulong", "size_t", "global", "local", "constant", "private",
    "generic", "kernel", "pipe", "uniform", "complex", "imaginary", "event_t", "sampler_t", "true", "false",
    // Words of C++, which some dialects are.
    "and", "or", "not", "xor", "bitand", "bitor", "compl", "new", "delete", "class", "this", "template", "typename",
    "public", "protected", "namespace", "operator", "try", "catch", "throw", "friend", "virtual", "explicit", "export",
    "mutable", "using", "asm", "concept", "requires",
    // Names of <math.h>.
    "sqrt", "floor", "ceil", "trunc", "rint", "fma", "exp", "log", "sin", "cos", "tan", "pow", "fmod", "erf", "gamma",
    "y0", "y1", "j0", "j1", "yn", "jn", "div", "round", "remainder"};

bool is_word(const std::string& name) {
  return std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

NamePool::NamePool() {
  for (const char* word : kWords) used_[word] = 1;
}

std::string NamePool::unique(const std::string& wish) {
  int& count = used_[wish];
  if (++count == 1) return wish;
  std::string name = wish + "_" + std::to_string(count);
  return used_.count(name) ? unique(wish) : (used_[name] = 1, name);
}

std::string ValuePrinter::constant(DType t, uint64_t bits) const {
  char text[64];
  if (is_float(t)) {
    const bool wide = t == DType::F64;
    const double v = wide ? std::bit_cast<double>(bits) : double(std::bit_cast<float>(uint32_t(bits)));
    if (std::isnan(v)) return dialect_.nan[wide];
    if (std::isinf(v)) return v < 0 ? std::string("(-") + dialect_.infinity[wide] + ")" : dialect_.infinity[wide];
    std::snprintf(text, sizeof text, std::fabs(v) < 1e6 && v == std::floor(v) ? "%.1f%s" : "%a%s", v, wide ? "" : "f");
    return std::signbit(v) ? "(" + std::string(text) + ")" : text;
  }
  const int width = traits(t).bits;
  if (traits(t).kind == DKind::Signed) {
    const int64_t v = width == 64   ? int64_t(bits)
                      : width == 32 ? int64_t(int32_t(bits))
                      : width == 16 ? int64_t(int16_t(bits))
                                    : int64_t(int8_t(bits));
    if (width == 64 && v == INT64_MIN) return "(-INT64_C(9223372036854775807) - 1)";
    if (width == 64 && (v > INT32_MAX || v < -INT32_MAX)) {
      std::snprintf(text, sizeof text, "INT64_C(%lld)", static_cast<long long>(v));
      return v < 0 ? "(-INT64_C(" + std::to_string(-v) + "))" : text;
    }
    if (v == INT32_MIN) return "(-2147483647 - 1)";
    return v < 0 ? "(" + std::to_string(v) + ")" : std::to_string(v);
  }
  if (t == DType::U64 && bits > UINT32_MAX) return "UINT64_C(" + std::to_string(bits) + ")";
  return std::to_string(bits) + (width >= 32 ? "u" : "");
}

std::string ValuePrinter::arithmetic(const char* sign, DType t, const std::string& a, const std::string& b) const {
  if (is_float(t)) return a + " " + sign + " " + b;
  const std::string u = unsigned_of(t);
  return "(" + type(t) + ")((" + u + ")" + a + " " + sign + " (" + u + ")" + b + ")";
}

std::string ValuePrinter::expression(const Node& n, const Ref& ref, const TypeOf& type_of) const {
  const auto [a, b, c] = n.arg;
  const std::string t = type(n.type);
  const bool wide = n.type == DType::F64, real = is_float(n.type);
  switch (n.op) {
    case Op::Neg:
      return real ? "-" + ref(a) : arithmetic("-", n.type, "0", ref(a));
    case Op::Not:
      return n.type == DType::Bool ? "!" + ref(a) : "(" + t + ")~" + ref(a);
    case Op::Sqrt:
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Rint:
      return std::string(dialect_.real[int(n.op) - int(Op::Sqrt)][wide]) + "(" + ref(a) + ")";
    case Op::Convert:
      return "(" + t + ")" + ref(a);
    case Op::Bitcast:
      if (real || is_float(type_of(a))) return "bits_" + t + "(" + ref(a) + ")";
      return "(" + t + ")" + ref(a);
    case Op::Shl:
      return "(" + t + ")((" + unsigned_of(n.type) + ")" + ref(a) + " << " + ref(b) + ")";
    case Op::Shr:
      return "(" + t + ")(" + ref(a) + " >> " + ref(b) + ")";
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
      return arithmetic(infix(n.op), n.type, ref(a), ref(b));
    case Op::Call: {
      const std::string name = helper_name(Helper(n.imm));
      helpers_.add(name, n.type);
      const bool status = !real && Helper(n.imm) != Helper::Pow;
      return name + "_" + t + "(" + ref(a) + ", " + ref(b) + (status ? ", status)" : ")");
    }
    case Op::Fma:
      return std::string(dialect_.real[5][wide]) + "(" + ref(a) + ", " + ref(b) + ", " + ref(c) + ")";
    case Op::Select:
    case Op::Rare:
      return ref(a) + " ? " + ref(b) + " : " + ref(c);
    case Op::And:
    case Op::Or:
    case Op::Xor: {
      const std::string plain = ref(a) + " " + infix(n.op) + " " + ref(b);
      return n.type == DType::Bool ? plain : "(" + t + ")(" + plain + ")";
    }
    default: {
      const char* sign = infix(n.op);
      STRATA_INTERNAL(sign, "no text for ", op_name(n.op));
      return ref(a) + " " + sign + " " + ref(b);
    }
  }
}

}  // namespace strata::lower
