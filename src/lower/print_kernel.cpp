// Loops around the passes, the kernels' table, whole files.
#include <algorithm>
#include <bit>

#include "lower/build.h"
#include "lower/print_c.h"

namespace strata::lower {

const char* const kCompileFlags =
    "-std=gnu11 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fno-strict-aliasing -fPIC -w "
    "-Wno-psabi";

const char* isa_name(Isa isa) {
  static constexpr const char* names[] = {"base", "v3", "v4"};
  return names[int(isa)];
}

const char* isa_flags(Isa isa) {
  static constexpr const char* flags[] = {"-march=x86-64", "-march=x86-64-v3",
                                          "-march=x86-64-v4 -mprefer-vector-width=512"};
  return flags[int(isa)];
}

std::string kernel_symbol(const Kernel& k, Isa isa) {
  return std::string(isa_name(isa)) + "_" + k.name + "_" + traits(k.dtype).cname;
}

namespace {

bool has_pairs(const Operand& o) { return is_complex(o.storage); }
std::string bytes(int64_t n) { return std::to_string(n); }

bool calls_status(const Pass& p) {
  return std::any_of(p.nodes.begin(), p.nodes.end(), [](const Node& n) { return n.op == Op::Call; });
}

std::string comment(const Kernel& k, const std::string& what) {
  std::string text = "// " + (k.source.empty() ? k.name : k.source) + what + "\n//   ";
  for (char c : k.text) {
    text += c;
    if (c == '\n') text += "//   ";
  }
  while (text.back() == ' ' || text.back() == '/' || text.back() == '\n') text.pop_back();
  return text + "\n";
}

std::string print_pointwise(const Kernel& k, Isa isa, Needs& needs) {
  bool vector = isa != Isa::Base;
  const Pass& pass = k.passes[0];
  BodyPrinter body(k, pass, vector, needs);
  std::string out = comment(k, "") + "void " + kernel_symbol(k, isa) +
                    "(char* const* ptr, const i64* step, const void* params, i64 blocks, i64 flags, i32* status) {\n";
  std::string advance;
  auto operand = [&](const Operand& o, size_t at, bool is_out) {
    std::string n = std::to_string(at);
    out += std::string("  ") + (is_out ? "" : "const ") + "char* p_" + o.name + (is_out ? "_out" : "") + " = ptr[" + n +
           "];\n";
    out += "  const i64 s_" + o.name + (is_out ? "_out" : "") + " = step[" + n + "];\n";
    advance += "    p_" + o.name + (is_out ? "_out" : "") + " += s_" + o.name + (is_out ? "_out" : "") + ";\n";
  };
  for (size_t i = 0; i < k.outputs.size(); ++i) operand(k.outputs[i], i, true);
  for (size_t i = 0; i < k.inputs.size(); ++i) operand(k.inputs[i], k.outputs.size() + i, false);
  out += body.uniform_part();
  if (vector) out += "  const i64 stream = flags & 1;\n";
  out += "  for (; blocks > 0; blocks--) {\n";
  if (!vector) out += "    ANY_ORDER\n    for (i64 l = 0; l < 16; l++) {\n";
  std::string pad(vector ? 4 : 6, ' ');
  out += body.element_part(vector ? 4 : 6);
  for (const Store& s : pass.stores) {
    const Operand& o = k.outputs[s.operand];
    DType t = pass.nodes[s.value].type;
    std::string e = traits(t).cname, p = "p_" + o.name + "_out", v = body.ref(s.value, vector);
    if (!vector)
      out += pad + "((" + e + "*)" + p + ")[" + (has_pairs(o) ? "2 * l + " + std::to_string(s.part) : "l") +
             "] = " + v + ";\n";
    else if (has_pairs(o))
      out += pad + body.helper("store_pairs", t, true) + "(" + p + " + " + bytes(s.part * itemsize(t)) + ", " + v +
             ", 16);\n";
    else
      out += pad + "STORE(" + body.type(t, true) + ", " + p + ", " + v + ");\n";
  }
  if (!vector) out += "    }\n";
  out += advance + "  }\n";
  if (vector) out += "  if (stream) __builtin_ia32_sfence();\n";
  return out + "}\n\n";
}

uint64_t identity_bits(const Reduction& r, DType t) {
  bool is_f32 = t == DType::F32, is_f64 = t == DType::F64;
  auto real = [&](double v) { return is_f32 ? std::bit_cast<uint32_t>(float(v)) : std::bit_cast<uint64_t>(v); };
  int bits = traits(t).bits;
  uint64_t top = uint64_t(1) << (bits - 1), ones = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  bool is_signed = traits(t).kind == DKind::Signed;
  switch (r.combine) {
    case Combine::Add:
      return is_f32 || is_f64 ? real(-0.0) : 0;
    case Combine::Mul:
      return is_f32 || is_f64 ? real(1) : 1;
    case Combine::Or:
      return 0;
    case Combine::And:
      return 1;
    case Combine::Max:
    case Combine::ArgMax:
      return is_f32 || is_f64 ? real(-__builtin_inf()) : is_signed ? top : 0;
    default:
      return is_f32 || is_f64 ? real(__builtin_inf()) : is_signed ? ones >> 1 : ones;
  }
}

const char* combine_name(Combine c) {
  static constexpr const char* names[] = {"add", "mul", "max", "min", "or", "and", "argmax", "argmin"};
  return names[int(c)];
}

// The reductions of one pass. Sums and products keep tree T's 1,024 positions in a local array (64 vectors). Where no
// order can change the result but for the sign of a zero (max, min, any, all) there are 16 positions, one vector, and
// NaN is noticed apart. Argmax and argmin keep four vectors or one value: the first of equals needs no order.
class ReductionPrinter {
 public:
  ReductionPrinter(const Kernel& k, const Pass& pass, BodyPrinter& body, bool vector, Needs& needs)
      : kernel_(k), pass_(pass), body_(body), vector_(vector), needs_(needs) {
    for (const Reduction& r : pass.reductions) names_.push_back(body.unique("acc_" + r.name));
  }

  std::string before() {
    std::string out, init;
    bool trees = false;
    for (size_t k = 0; k < pass_.reductions.size(); ++k) {
      const Reduction& r = pass_.reductions[k];
      DType t = pass_.nodes[r.value[0]].type;
      std::string type = body_.type(t), start = body_.constant(t, identity_bits(r, t)), name = names_[k];
      if (is_arg(r)) {
        std::string index = body_.type(index_type(t));
        if (vector_)
          out += "  " + type + " " + name + "[4] = {" + start + ", " + start + ", " + start + ", " + start + "};\n  " +
                 index + " " + name + "_at[4] = {0};\n";
        else
          out += "  " + type + " " + name + " = " + start + ";\n  i64 " + name + "_at = 0;\n";
        continue;
      }
      if (!is_tree(r)) {
        if (vector_)
          out += "  " + type + " " + name + " = " + start + ";\n";
        else
          out += "  " + type + " " + name + "[16];\n  for (int l = 0; l < 16; l++) " + name + "[l] = " + start + ";\n";
        if (is_float(t))
          out += "  " + (vector_ ? body_.type(mask_lane(traits(t).bits)) : "bit") + " nan_" + name + " = " +
                 (vector_ ? "{0}" : "0") + ";\n";
        continue;
      }
      for (const std::string& n : parts(k)) {
        out += "  " + type + " " + n + (vector_ ? "[64];\n" : "[1024];\n");
        if (!vector_) init += "  for (i64 k = count; k < 16 * used; k++) " + n + "[k] = " + start + ";\n";
      }
      trees = true;
    }
    if (trees) out += "  const i64 used = count > 1008 ? 64 : (count + 15) >> 4;\n" + init;
    return out;
  }

  std::string inside() {
    std::string out;
    for (size_t k = 0; k < pass_.reductions.size(); ++k) {
      const Reduction& r = pass_.reductions[k];
      out += is_arg(r)            ? inside_arg(k)
             : !is_tree(r)        ? inside_free(k)
             : complex_product(r) ? inside_product(k)
                                  : inside_tree(k);
    }
    return out;
  }

  std::string after() {
    std::string out;
    for (size_t k = 0; k < pass_.reductions.size(); ++k) {
      const Reduction& r = pass_.reductions[k];
      DType t = pass_.nodes[r.value[0]].type;
      std::string slot = "(char*)args->partial + " + std::to_string(16 * k), e = traits(t).cname;
      if (is_arg(r) && vector_) {
        out += "  " + body_.helper(std::string("fold_") + combine_name(r.combine), t, true) + "(" + names_[k] + ", " +
               names_[k] + "_at, args->first, " + slot + ");\n";
      } else if (is_arg(r)) {
        out += "  *(" + e + "*)(" + slot + ") = " + names_[k] + ";\n  *(i64*)(" + slot + " + 8) = args->first + " +
               names_[k] + "_at;\n";
      } else if (!is_tree(r)) {
        std::string any = vector_ && is_float(t)
                              ? body_.helper("any", mask_lane(traits(t).bits), true) + "(nan_" + names_[k] + ")"
                              : "nan_" + names_[k];
        std::string nan = t == DType::F32 ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
        out += "  *(" + e + "*)(" + slot + ") = " + (is_float(t) ? any + " ? " + nan + " : " : "") +
               body_.helper(std::string("lanes_") + combine_name(r.combine), t, vector_) + "(" + names_[k] + ");\n";
      } else if (complex_product(r)) {
        needs_.insert("fold_complex_" + e);
        out += "  fold_complex_" + e + "((" + e + "*)" + names_[k] + ", (" + e + "*)" + names_[k] + "_im, count, (" +
               e + "*)(" + slot + "));\n";
      } else {
        std::vector<std::string> part = parts(k);
        for (size_t p = 0; p < part.size(); ++p)
          out += "  ((" + e + "*)(" + slot + "))[" + std::to_string(p) +
                 "] = " + body_.helper(std::string("fold_") + combine_name(r.combine), t, vector_) + "(" + part[p] +
                 ", used);\n";
      }
    }
    return out;
  }

 private:
  static bool is_arg(const Reduction& r) { return r.combine == Combine::ArgMax || r.combine == Combine::ArgMin; }
  static bool complex_product(const Reduction& r) { return r.combine == Combine::Mul && is_complex(r.accumulator); }
  static bool is_tree(const Reduction& r) { return r.combine == Combine::Add || r.combine == Combine::Mul; }
  static DType index_type(DType t) { return traits(t).bits == 64 ? DType::I64 : DType::I32; }

  std::vector<std::string> parts(size_t k) {
    if (pass_.reductions[k].value[1] < 0) return {names_[k]};
    return {names_[k], names_[k] + "_im"};
  }

  std::string inside_free(size_t k) {
    const Reduction& r = pass_.reductions[k];
    DType t = pass_.nodes[r.value[0]].type;
    std::string e = "e_" + names_[k], at = names_[k] + (vector_ ? "" : "[i & 15]");
    std::string out = "    " + body_.type(t) + " " + e + " = " + body_.ref(r.value[0], vector_) + ";\n";
    if (vector_)
      out += "    if (RARELY(left < 16)) " + e + " = " + present(t, e, body_.constant(t, identity_bits(r, t))) + ";\n";
    out += "    " + at + " = " + body_.helper(combine_name(r.combine), t, vector_) + "(" + at + ", " + e + ");\n";
    if (is_float(t)) out += "    nan_" + names_[k] + " |= " + e + " != " + e + ";\n";
    return out;
  }

  std::string inside_tree(size_t k) {
    const Reduction& r = pass_.reductions[k];
    std::string out;
    std::vector<std::string> part = parts(k);
    for (size_t p = 0; p < part.size(); ++p) {
      int v = r.value[p];
      DType t = pass_.nodes[v].type;
      std::string at = part[p] + (vector_ ? "[i >> 4 & 63]" : "[i & 1023]"), value = body_.ref(v, vector_);
      if (vector_) {
        out += "    " + body_.type(t) + " e_" + part[p] + " = " + value + ";\n";
        out += "    if (RARELY(left < 16)) e_" + part[p] + " = " +
               present(t, "e_" + part[p], body_.constant(t, identity_bits(r, t))) + ";\n";
      } else {
        out += "    " + body_.type(t, false) + " e_" + part[p] + " = " + value + ";\n";
      }
      value = "e_" + part[p];
      out += "    if (i >= 1024) " + value + " = " + body_.helper(combine_name(r.combine), t, vector_) + "(" + at +
             ", " + value + ");\n";
      out += "    " + at + " = " + value + ";\n";
    }
    return out;
  }

  std::string present(DType t, const std::string& value, const std::string& other) {
    int bits = traits(t).bits;
    DType lane = mask_lane(bits);
    std::string m = body_.type(lane, true);
    needs_.insert("lanes_" + m);
    return body_.helper("select", t, true) + "(LANES_" + m + " < SPLAT(" + m + ", (" + traits(lane).cname + ")left), " +
           value + ", " + other + ")";
  }

  std::string inside_arg(size_t k) {
    const Reduction& r = pass_.reductions[k];
    int v = r.value[0];
    DType t = pass_.nodes[v].type;
    std::string sign = r.combine == Combine::ArgMax ? " > " : " < ", best = names_[k], e = "e_" + names_[k];
    std::string out = "    " + body_.type(t) + " " + e + " = " + body_.ref(v, vector_) + ";\n";
    if (!vector_) {
      std::string nan = is_float(t) ? " || (" + e + " != " + e + " && " + best + " == " + best + ")" : "";
      return out + "    if (" + e + sign + best + nan + ") {\n      " + best + " = " + e + ";\n      " + best +
             "_at = i;\n    }\n";
    }
    out += "    if (RARELY(left < 16)) " + e + " = " + present(t, e, body_.constant(t, identity_bits(r, t))) + ";\n";
    std::string way = "[i >> 4 & 3]", m = "m_" + best, index = body_.type(index_type(t), true);
    std::string nan = is_float(t) ? " | ((" + e + " != " + e + ") & (" + best + way + " == " + best + way + "))" : "";
    int bits = traits(t).bits;
    std::string mask = body_.type(mask_lane(bits), true);
    needs_.insert("lanes_" + index);
    out += "    const " + mask + " " + m + " = (" + e + sign + best + way + ")" + nan + ";\n";
    out +=
        "    " + best + way + " = " + body_.helper("select", t, true) + "(" + m + ", " + e + ", " + best + way + ");\n";
    std::string wide = mask == index ? m : "CONVERT(" + index + ", " + m + ")";
    out += "    " + best + "_at" + way + " = " + body_.helper("select", index_type(t), true) + "(" + wide + ", LANES_" +
           index + " + SPLAT(" + index + ", (" + traits(index_type(t)).cname + ")i), " + best + "_at" + way + ");\n";
    return out;
  }

  // The first element of a position starts it: the identity would turn infinities into NaN.
  std::string inside_product(size_t k) {
    const Reduction& r = pass_.reductions[k];
    std::string re = body_.ref(r.value[0], vector_), im = body_.ref(r.value[1], vector_), a = names_[k];
    DType type = pass_.nodes[r.value[0]].type;
    std::string at = vector_ ? "[i >> 4 & 63]" : "[i & 1023]", t = "    " + body_.type(type), x = "x_" + a,
                y = "y_" + a;
    std::string out = t + " " + x + " = " + re + ", " + y + " = " + im + ";\n    if (i >= 1024) {\n";
    out += "  " + t + " p = " + a + at + ", q = " + a + "_im" + at + ", re = p * " + x + " - q * " + y + ", im = p * " +
           y + " + q * " + x + ";\n";
    std::string keep_re = vector_ ? present(type, "re", "p") : "re",
                keep_im = vector_ ? present(type, "im", "q") : "im";
    out += "      " + x + " = " + keep_re + ";\n      " + y + " = " + keep_im + ";\n    }\n";
    return out + "    " + a + at + " = " + x + ";\n    " + a + "_im" + at + " = " + y + ";\n";
  }

  const Kernel& kernel_;
  const Pass& pass_;
  BodyPrinter& body_;
  bool vector_;
  Needs& needs_;
  std::vector<std::string> names_;
};

std::string print_pass(const Kernel& k, size_t number, Isa isa, Needs& needs) {
  bool vector = isa != Isa::Base;
  const Pass& pass = k.passes[number];
  BodyPrinter body(k, pass, vector, needs);
  ReductionPrinter reductions(k, pass, body, vector, needs);
  std::string title = ", pass " + std::to_string(number + 1) + " of " + std::to_string(k.passes.size());
  std::string out = comment(k, title) + "void " + kernel_symbol(k, isa) + "_p" + std::to_string(number) +
                    "(const StrataRowArgs* args) {\n";
  for (size_t i = 0; i < k.outputs.size(); ++i)
    for (const Store& s : pass.stores)
      if (!s.scratch && s.operand == int(i) && s.part == 0)
        out += "  char* p_" + k.outputs[i].name + "_out = args->ptr[" + std::to_string(i) + "];\n";
  for (size_t i = 0; i < k.inputs.size(); ++i)
    for (const Node& n : pass.nodes)
      if (n.op == Op::Load && n.imm == i) {
        out += "  const char* p_" + k.inputs[i].name + " = args->ptr[" + std::to_string(k.outputs.size() + i) + "];\n";
        break;
      }
  for (size_t i = 0; i < k.scratch.size(); ++i)
    out += "  char* scratch_" + std::to_string(i) + " = args->scratch[" + std::to_string(i) + "];\n";
  if (calls_status(pass)) out += "  i32 unused = 0, *status = &unused;\n";
  out += body.uniform_part();
  bool loop = pass.elementwise || !pass.reductions.empty();
  if (loop) {
    out += "  const i64 count = args->count;\n" + reductions.before();
    out += std::string("  for (i64 i = 0; i < count; i += ") + (vector ? "16" : "1") + ") {\n";
    if (vector) out += "    const i64 left = count - i;\n";
    out += body.element_part(4);
  }
  std::string per_row;
  for (const Store& s : pass.stores) {
    DType t = pass.nodes[s.value].type;
    std::string e = traits(t).cname;
    bool one = !s.scratch && k.outputs[s.operand].per_row;
    bool pairs = !s.scratch && has_pairs(k.outputs[s.operand]);
    std::string p = s.scratch ? "scratch_" + std::to_string(s.operand) : "p_" + k.outputs[s.operand].name + "_out";
    std::string v = body.ref(s.value, vector && !one);
    if (one)
      per_row += std::string(loop ? "  if (args->first == 0) " : "  ") + "((" + e + "*)" + p + ")[" +
                 std::to_string(s.part) + "] = " + v + ";\n";
    else if (!vector)
      out += "    ((" + e + "*)" + p + ")[" + (pairs ? "2 * i + " + std::to_string(s.part) : "i") + "] = " + v + ";\n";
    else if (pairs)
      out += "    " + body.helper("store_pairs", t, true) + "(" + p + " + i * " + bytes(2 * itemsize(t)) + " + " +
             bytes(s.part * itemsize(t)) + ", " + v + ", left);\n";
    else
      out += "    " + body.helper("store", t, true) + "((" + e + "*)" + p + " + i, " + v + ", left);\n";
  }
  if (loop) out += reductions.inside() + "  }\n" + reductions.after();
  return out + per_row + "}\n\n";
}

std::string table_entry(const Kernel& k, Isa isa, std::string& tables) {
  std::string symbol = kernel_symbol(k, isa);
  auto list = [&](const std::string& suffix, const std::vector<int>& values) {
    tables += "static const u8 " + symbol + suffix + "[] = {";
    for (size_t i = 0; i < values.size(); ++i) tables += (i ? ", " : "") + std::to_string(values[i]);
    tables += "};\n";
  };
  std::vector<int> types, rows;
  for (const Operand& o : k.outputs) types.push_back(int(o.storage)), rows.push_back(o.per_row);
  for (const Operand& o : k.inputs) rows.push_back(o.per_row);
  list("_types", types);
  list("_rows", rows);
  bool is_rows = k.kind == KernelKind::Rows;
  size_t reductions = 0;
  for (const Pass& p : k.passes) reductions += p.reductions.size();
  if (is_rows) {
    tables += "static const StrataRowPass " + symbol + "_passes[] = {";
    for (size_t p = 0; p < k.passes.size(); ++p)
      tables += std::string(p ? ", " : "") + "{" + symbol + "_p" + std::to_string(p) + ", " +
                std::to_string(k.passes[p].reductions.size()) + ", " + (k.passes[p].elementwise ? "1" : "0") + "}";
    tables += "};\n";
  }
  if (reductions) {
    tables += "static const StrataReduction " + symbol + "_reductions[] = {";
    const char* separator = "";
    for (const Pass& p : k.passes)
      for (const Reduction& r : p.reductions) {
        tables += std::string(separator) + "{" + std::to_string(int(r.combine)) + ", " +
                  std::to_string(int(r.accumulator)) + "}";
        separator = ", ";
      }
    tables += "};\n";
  }
  auto n = [](size_t v) { return std::to_string(v) + ", "; };
  return "  {\"" + k.name + "\", " + n(size_t(k.dtype)) + (is_rows ? "1, " : "0, ") + n(k.outputs.size()) +
         n(k.inputs.size()) + n(k.scalars.size()) + n(k.scratch.size()) + n(is_rows ? k.passes.size() : 0) +
         n(reductions) + (is_rows ? "0, " : symbol + ", ") + (is_rows ? symbol + "_passes, " : "0, ") +
         (reductions ? symbol + "_reductions, " : "0, ") + symbol + "_types, " + symbol + "_rows},\n";
}

}  // namespace

std::string print_function(const Kernel& k, Isa isa, Needs& needs) {
  if (k.kind == KernelKind::Pointwise) return print_pointwise(k, isa, needs);
  std::string out;
  for (size_t p = 0; p < k.passes.size(); ++p) out += print_pass(k, p, isa, needs);
  return out;
}

std::string print_file(const std::string& family, const std::vector<Kernel>& kernels, Isa isa) {
  Needs needs;
  std::string functions, tables, entries;
  for (const Kernel& k : kernels) {
    functions += print_function(k, isa, needs);
    entries += table_entry(k, isa, tables);
  }
  std::string name = std::string(isa_name(isa)) + "_" + family;
  return "// " + name + ": kernels printed by lower/ from the operator table. Do not edit.\n" + prelude(needs) +
         functions + tables + "static const StrataKernelEntry entries[] = {\n" + entries +
         "};\nconst StrataKernelFile strata_kernels_" + name + " = {entries, " + std::to_string(kernels.size()) +
         "};\n";
}

std::string print_kernel(const KernelDesc& desc, DType dtype, Isa isa) {
  return print_file(desc.name, {build_kernel(desc, dtype)}, isa);
}

KernelInfo describe(const KernelDesc& desc, DType dtype) {
  Kernel k = build_kernel(desc, dtype);
  KernelInfo info{k.name, k.kind, k.dtype, k.outputs, k.inputs, k.scalars, k.scratch, {}, {}};
  for (const Pass& p : k.passes) {
    for (const Reduction& r : p.reductions) info.reductions.push_back({r.combine, r.accumulator});
    info.passes.push_back({int(p.reductions.size()), p.elementwise});
  }
  return info;
}

}  // namespace strata::lower
