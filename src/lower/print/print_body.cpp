// Statements of one pass, in one-lane or 16-lane form.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>

#include "lower/print/print_c.h"

namespace strata::lower {
namespace {

std::string float_text(double v, bool is_f32) {
  const char* suffix = is_f32 ? "f" : "";
  if (std::isnan(v)) return std::string("__builtin_nan") + suffix + "(\"\")";
  if (std::isinf(v)) return std::string(v < 0 ? "-" : "") + "__builtin_inf" + suffix + "()";
  char text[64];
  for (int digits = is_f32 ? 6 : 15; digits <= (is_f32 ? 9 : 17); ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, v);
    if (is_f32 ? std::strtof(text, nullptr) == float(v) : std::strtod(text, nullptr) == v) break;
  }
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + suffix;
}

std::string literal_text(DType t, uint64_t bits) {
  auto signed_text = [](int64_t v, const char* suffix) { return std::to_string(v) + suffix; };
  switch (t) {
    case DType::F32:
      return float_text(std::bit_cast<float>(uint32_t(bits)), true);
    case DType::F64:
      return float_text(std::bit_cast<double>(bits), false);
    case DType::I8:
      return signed_text(int8_t(bits), "");
    case DType::I16:
      return signed_text(int16_t(bits), "");
    case DType::I32:
      return int32_t(bits) == INT32_MIN ? "(-2147483647 - 1)" : signed_text(int32_t(bits), "");
    case DType::I64:
      return int64_t(bits) == INT64_MIN ? "(-9223372036854775807l - 1)" : signed_text(int64_t(bits), "l");
    case DType::U32:
    case DType::U64: {
      char text[32];
      std::snprintf(text, sizeof text, bits < 4096 ? "%lu" : "0x%lx", static_cast<unsigned long>(bits));
      return std::string(text) + (t == DType::U32 ? "u" : "ul");
    }
    default:
      return std::to_string(bits);
  }
}

}  // namespace

DType mask_lane(int bits) {
  return bits == 8 ? DType::I8 : bits == 16 ? DType::I16 : bits == 64 ? DType::I64 : DType::I32;
}

BodyPrinter::BodyPrinter(const Kernel& kernel, const Pass& pass, bool vector, Needs& needs, int64_t wide, bool across)
    : kernel_(kernel), pass_(pass), vector_(vector), across_(across), wide_(wide), needs_(needs) {
  for (const char* word :
       {"int",     "long",   "float",    "double",   "char",   "short",  "void",     "if",       "for",      "do",
        "while",   "else",   "return",   "const",    "static", "signed", "unsigned", "switch",   "case",     "break",
        "default", "auto",   "enum",     "struct",   "union",  "goto",   "inline",   "register", "restrict", "sizeof",
        "typedef", "extern", "volatile", "continue", "bit",    "ptr",    "step",     "params",   "blocks",   "flags",
        "status",  "args",   "i",        "l",        "left",   "count",  "first",    "stream",   "used",     "columns",
        "row",     "at",     "to",       "lane",     "there",  "here",   "u"})
    used_[word] = 1;
  for (int k = 0; k < kDTypeCount; ++k) used_[traits(DType(k)).cname] = 1;
  for (const Operand& o : kernel.outputs) used_["p_" + o.name + "_out"] = used_["s_" + o.name + "_out"] = 1;
  for (const Operand& o : kernel.inputs) used_["p_" + o.name] = used_["s_" + o.name] = used_["held_" + o.name] = 1;
  size_t n = pass.nodes.size();
  users_.resize(n);
  owner_.assign(n, -1);
  group_of_.assign(n, -1);
  emitted_.assign(n, 0);
  splat_.assign(n, 0);
  for (size_t v = 0; v < n; ++v)
    for (int a : pass.nodes[v].arg)
      if (a >= 0) {
        users_[a].push_back(int(v));
        if (!pass.nodes[v].uniform) splat_[a] = 1;
      }
  loops_.assign(n, 0);
  for (size_t v = 0; v < n; ++v) {
    const Node& node = pass.nodes[v];
    const uint64_t own = node.op == Op::State || node.op == Op::Carried ? uint64_t(1) << node.imm : 0;
    for (int a : node.arg)
      if (a >= 0) loops_[v] |= loops_[size_t(a)];
    if (node.op == Op::State) loops_[v] = own;
    if (node.op == Op::Carried)
      for (int a : pass.carries[node.imm].uses()) loops_[v] |= loops_[size_t(a)] & ~own;
  }
  for (const Carry& c : pass.carries)
    for (int v : c.uses()) splat_[size_t(v)] = 1;
  for (const Store& s : pass.stores)
    if (across || s.scratch || !kernel.outputs[s.operand].per_row) splat_[s.value] = 1;
  for (const Reduction& r : pass.reductions)
    for (int v : r.value)
      if (v >= 0) splat_[v] = 1;
  names_.resize(n);
  for (bool own : {true, false})  // the text's names first: they stay as they are
    for (size_t v = 0; v < n; ++v)
      if (pass.nodes[v].op != Op::Const && own == (pass.nodes[v].own || pass.nodes[v].leaf()))
        names_[v] = unique(wish(pass.nodes[v]));
  for (const Carry& c : pass.carries) {
    carry_names_.emplace_back();
    for (const std::string& name : c.names) carry_names_.back().push_back(unique(name));
  }
  for (size_t v = 0; v < n; ++v)
    if (const Node& node = pass.nodes[v]; node.op == Op::State || node.op == Op::Carried)
      names_[v] = carry_names_[node.imm][node.part];
  find_groups();
  if (across) find_columns();
}

std::string BodyPrinter::wish(const Node& n) const {
  std::string name = n.name;
  if (n.op == Op::Param) name = kernel_.scalars[n.imm].name;
  if (n.op == Op::Load) name = kernel_.inputs[n.imm].name;
  if (n.op == Op::Load && n.type != traits(kernel_.inputs[n.imm].storage).component) name += "_bits";
  if (n.op == Op::Index) name = "index";
  if (n.op == Op::Length) name = "length";
  if (name.empty()) name = n.type == DType::Bool ? "m" : "t";
  return n.leaf() && n.part ? name + "_im" : name;
}

std::string BodyPrinter::unique(const std::string& wish) {
  int& count = used_[wish];
  ++count;
  if (count == 1) return wish;
  std::string name = wish + "_" + std::to_string(count);
  return used_.count(name) ? unique(wish) : (used_[name] = 1, name);
}

std::string BodyPrinter::type(DType t, bool vector) {
  if (!vector) return t == DType::Bool ? "bit" : traits(t).cname;
  std::string name = (wide_ == 64 ? "w" : wide_ == 32 ? "x" : "v") + std::string(traits(t).cname);
  needs_.insert(name);
  return name;
}

std::string BodyPrinter::helper(const std::string& name, DType t, bool vector) {
  std::string full = name + "_" + type(t, vector);
  needs_.insert(full);
  return full;
}

std::string BodyPrinter::constant(DType t, uint64_t bits) {
  std::string text = literal_text(t, bits);
  if (!vector_) return text[0] == '-' ? "(" + text + ")" : text;
  std::string name = type(t, true);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::toupper(c); });
  return name + "(" + text + ")";
}

std::string BodyPrinter::literal(const Node& n) { return literal_text(n.type, n.imm); }

std::string BodyPrinter::ref(int v, bool vector) {
  const Node& n = pass_.nodes[v];
  if (n.op == Op::Const) {
    if (vector) return constant(n.type, n.imm);
    std::string text = literal(n);
    return text[0] == '-' ? "(" + text + ")" : text;
  }
  if (of_lane_ >= 0 && !n.uniform && !inside_[size_t(of_lane_)][size_t(v)])
    return n.type == DType::Bool ? "(" + names_[v] + "_of[lane] != 0)" : names_[v] + "_of[lane]";
  return vector && n.uniform ? names_[v] + "_v" : names_[v];
}

int BodyPrinter::mask_bits(int v) const {
  const Node& n = pass_.nodes[v];
  if (n.uniform) return 32;
  if (n.op >= Op::Eq && n.op <= Op::Ge) return traits(pass_.nodes[n.arg[0]].type).bits;
  for (int a : n.arg)
    if (a >= 0 && pass_.nodes[a].type == DType::Bool && !pass_.nodes[a].uniform &&
        !(n.op == Op::Select && a == n.arg[0]))
      return mask_bits(a);
  return 32;
}

bool BodyPrinter::tests_bit(int v) const {
  const Node& n = pass_.nodes[v];
  return n.op == Op::Ne && !n.uniform && pass_.nodes[n.arg[0]].op == Op::And && pass_.nodes[n.arg[1]].op == Op::Const;
}

std::string BodyPrinter::mask(int v, int bits) {
  const Node& n = pass_.nodes[v];
  DType lane = mask_lane(bits);
  if (n.op == Op::Const) return constant(lane, n.imm ? (uint64_t(-1) >> (64 - bits)) : 0);
  std::string t = type(lane, true);
  if (n.uniform)
    return "SPLAT(" + t + ", (" + std::string(traits(lane).cname) + ")-(" + traits(lane).cname + ")" + names_[v] + ")";
  return mask_bits(v) == bits ? names_[v] : "CONVERT(" + t + ", " + names_[v] + ")";
}

bool writes_rows(const Pass& pass) { return !pass.elementwise && pass.reductions.empty(); }

int64_t reduced_bytes(const Kernel& kernel) {
  std::vector<Reduction> all;
  for (const Pass& p : kernel.passes) all.insert(all.end(), p.reductions.begin(), p.reductions.end());
  const bool alone = all.size() == 1 && all[0].combine != Combine::ArgMax && all[0].combine != Combine::ArgMin;
  return alone ? itemsize(all[0].accumulator) : 16 * int64_t(all.size());
}

std::string BodyPrinter::place_of(int part, bool pairs) const {
  const std::string n = std::to_string(part);
  if (kernel_.kind != KernelKind::Rows || !writes_rows(pass_)) return n;
  return pairs ? "2 * row + " + n : "row";
}

std::string BodyPrinter::block_step(const Operand& o, const std::string& suffix) const {
  return holds_ ? std::to_string(16 * itemsize(o.storage)) : "s_" + o.name + suffix;
}

std::string BodyPrinter::load(const Node& n, bool vector) {
  bool scratch = n.op == Op::Scratch;
  bool pairs = !scratch && is_complex(kernel_.inputs[n.imm].storage);
  std::string p = scratch ? "scratch_" + std::to_string(n.imm) : "p_" + kernel_.inputs[n.imm].name;
  std::string t = type(n.type, vector), e = traits(n.type).cname;
  if (!scratch && holds_ && holds_ >> n.imm & 1) return "held_" + kernel_.inputs[n.imm].name;
  if (across_) {
    const bool one = !scratch && kernel_.inputs[n.imm].per_row;
    if (!scratch) p += one ? "" : " + at * s_" + kernel_.inputs[n.imm].name;
    if (scratch) p += " + at * s_scratch_" + std::to_string(n.imm);
    if (!vector) return "((const " + e + "*)(" + p + "))[i]";
    return "LOAD(" + t + ", " + p + " + i * " + std::to_string(itemsize(n.type)) + ")";
  }
  if (n.uniform) return "((const " + e + "*)" + p + ")[" + place_of(n.part, pairs) + "]";
  bool rows = kernel_.kind == KernelKind::Rows;
  if (!vector) {
    std::string at = rows ? "i" : "l";
    return "((const " + e + "*)" + p + ")[" + (pairs ? "2 * " + at + " + " + std::to_string(n.part) : at) + "]";
  }
  if (pairs) {
    helper("load_pairs", n.type, true);
    std::string at = (rows ? " + i * " : " + l * ") + std::to_string(2 * itemsize(n.type));
    std::string part = " + " + std::to_string(n.part * itemsize(n.type));
    return "load_pairs_" + t + "(" + p + at + part + ", " + (rows ? "left" : "LANES") + ")";
  }
  if (!rows && wide_) {
    needs_.insert(std::string("v") + e);
    return "LOADS_" + std::to_string(wide_) + "(v" + e + ", " + p + ", " + block_step(kernel_.inputs[n.imm], "") + ")";
  }
  if (!rows) return "LOAD(" + t + ", " + p + " + l * " + std::to_string(itemsize(n.type)) + ")";
  if (wide_ || ends_nowhere()) return "LOAD(" + t + ", " + p + " + i * " + std::to_string(itemsize(n.type)) + ")";
  return helper("load", n.type, true) + "((const " + e + "*)" + p + " + i, left)";
}

std::string BodyPrinter::expression(int v, bool vector) {
  const Node& n = pass_.nodes[v];
  auto [a, b, c] = n.arg;
  auto arg = [&](int x) { return ref(x, vector); };
  bool is_bool = n.type == DType::Bool;
  std::string t = type(n.type, false), size = vector && is_bool ? std::to_string(mask_bits(v)) : "";
  auto bool_arg = [&](int x) { return vector ? mask(x, mask_bits(v)) : ref(x, false); };
  switch (n.op) {
    case Op::Param:
      return "((const " + std::string(traits(n.type).cname) + "*)((const char*)" +
             (kernel_.kind == KernelKind::Rows ? "args->params" : "params") + " + " + std::to_string(16 * n.imm) +
             "))[" + std::to_string(n.part) + "]";
    case Op::Reduced: {
      bool index = n.part && !is_float(n.type);
      if (across_) {
        const std::string p = "p_reduced_" + std::to_string(2 * n.imm + index);
        if (!vector) return "((const " + t + "*)" + p + ")[i]";
        return "LOAD(" + type(n.type, true) + ", " + p + " + i * " + std::to_string(itemsize(n.type)) + ")";
      }
      return "*(const " + t + "*)((const char*)args->reduced + " +
             std::to_string(16 * n.imm + (index ? 8 : n.part * itemsize(n.type))) +
             (writes_rows(pass_) ? " + row * " + std::to_string(reduced_bytes(kernel_)) : "") + ")";
    }
    case Op::Load:
    case Op::Scratch:
      return load(n, vector);
    case Op::Index:
      if (across_) return vector ? "SPLAT(" + type(DType::I64, true) + ", args->first + at)" : "args->first + at";
      if (!vector) return "args->first + i";
      needs_.insert("lanes_vi64");
      return "SPLAT(" + type(DType::I64, true) + ", args->first + i) + LANES_vi64";
    case Op::Length:
      return "args->length";
    case Op::Neg:
      return "-" + arg(a);
    case Op::Not:
      if (is_bool) return vector ? "~" + mask(a, mask_bits(v)) : "!" + arg(a);
      return "~" + arg(a);
    case Op::Sqrt:
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Rint:
      return helper(op_name(n.op), n.type, vector) + "(" + arg(a) + ")";
    case Op::Convert: {
      bool from_bool = pass_.nodes[a].type == DType::Bool;
      if (!vector) return "(" + t + ")" + arg(a);
      if (!from_bool) return "CONVERT(" + type(n.type, true) + ", " + arg(a) + ")";
      if (!is_float(n.type)) return "CONVERT(" + type(n.type, true) + ", " + mask(a, mask_bits(a)) + ") & 1";
      return helper("select", n.type, true) + "(" + mask(a, traits(n.type).bits) + ", " +
             constant(n.type, n.type == DType::F32 ? std::bit_cast<uint32_t>(1.0f) : std::bit_cast<uint64_t>(1.0)) +
             ", " + constant(n.type, 0) + ")";
    }
    case Op::Bitcast:
      return vector ? "(" + type(n.type, true) + ")" + arg(a) : "BITS(" + t + ", " + arg(a) + ")";
    case Op::WidenHalf:
    case Op::NarrowHalf: {
      const bool widen = n.op == Op::WidenHalf;
      if (vector)
        return widen ? "CONVERT(" + type(n.type, true) + ", (" + type(DType::F16, true) + ")" + arg(a) + ")"
                     : "(" + type(n.type, true) + ")CONVERT(" + type(DType::F16, true) + ", " + arg(a) + ")";
      const char* function = widen ? "f16_to_f32" : "f32_to_f16";
      needs_.insert(function);
      return std::string(function) + "(" + arg(a) + ")";
    }
    case Op::Call: {
      std::string name = helper_name(Helper(n.imm)), args = arg(a) + ", " + arg(b);
      if (vector) {
        helper("each_" + name, n.type, true);
        return "EACH_LANE(" + type(n.type, true) + ", " + name + ", " + args +
               (kernel_.kind == KernelKind::Rows ? ", left)" : ", LANES)");
      }
      return helper(name, n.type, false) + "(" + args + (n.takes_status() ? ", status)" : ")");
    }
    case Op::Fma:
      return helper("fma", n.type, vector) + "(" + arg(a) + ", " + arg(b) + ", " + arg(c) + ")";
    case Op::Select:
    case Op::Rare:
      if (!vector) return arg(a) + " ? " + arg(b) + " : " + arg(c);
      if (is_bool) {
        int bits = mask_bits(v);
        std::string m = mask(a, bits);
        return "(" + mask(b, bits) + " & " + m + ") | (" + mask(c, bits) + " & ~" + m + ")";
      }
      return helper("select", n.type, true) + "(" + mask(a, traits(n.type).bits) + ", " + arg(b) + ", " + arg(c) + ")";
    default:
      break;
  }
  const char* sign = infix(n.op);
  STRATA_INTERNAL(sign, "no text for ", op_name(n.op));
  bool of_bools = pass_.nodes[a].type == DType::Bool;
  auto operand = [&](int x, int other) {
    if (of_bools) return bool_arg(x);
    const Node& k = pass_.nodes[x];
    // A plain number spreads over the lanes of the other operand by itself.
    if (vector && k.op == Op::Const && pass_.nodes[other].op != Op::Const && traits(k.type).bits >= 32)
      return ref(x, false);
    return arg(x);
  };
  // Of the test of a bit LLVM makes arithmetic, of what is not equal a choice.
  if (vector && tests_bit(v)) return "~(" + operand(a, b) + " == " + operand(b, a) + ")";
  return operand(a, b) + " " + sign + " " + operand(b, a);
}

std::string BodyPrinter::statement(int v, bool vector) {
  const Node& n = pass_.nodes[v];
  std::string t = vector && n.type == DType::Bool ? type(mask_lane(mask_bits(v)), true) : type(n.type, vector);
  return "const " + t + " " + names_[v] + " = " + expression(v, vector) + ";";
}

void BodyPrinter::line(const std::string& text, int origin) {
  out_ += marked(std::string(indent_, ' ') + text + "\n", origin);
}

std::string BodyPrinter::uniform_part() {
  out_.clear();
  indent_ = 2;
  for (size_t v = 0; v < pass_.nodes.size(); ++v) {
    const Node& n = pass_.nodes[v];
    if (!n.uniform || n.op == Op::Const) continue;
    emitted_[v] = 1;
    line(statement(int(v), false), n.origin);
    if (!vector_ || !splat_[v] || n.type == DType::Bool) continue;
    line("const " + type(n.type, true) + " " + names_[v] + "_v = SPLAT(" + type(n.type, true) + ", " + names_[v] + ");",
         n.origin);
  }
  return std::move(out_);
}

std::string BodyPrinter::element_part(int indent) {
  out_.clear();
  indent_ = indent;
  for (size_t v = 0; v < pass_.nodes.size(); ++v)
    if (owner_[v] < 0 && !loops_[v]) emit(int(v));
  return std::move(out_);
}

void BodyPrinter::emit(int v) {
  const Node& n = pass_.nodes[v];
  if (emitted_[v] || n.uniform) return;
  if (group_of_[v] >= 0 && of_lane_ < 0) return emit_group(group_of_[v]);
  if (n.op == Op::Carried) return emit_repeat(int(n.imm));
  emitted_[v] = 1;
  for (int a : n.arg)
    if (a >= 0) emit(a);
  line(statement(v, vector_ && of_lane_ < 0), n.origin);
}

}  // namespace strata::lower
