// The function of a pointwise kernel: what all sets print, and, where registers are many, the forms for rows.
#include "lower/kernel_abi.h"
#include "lower/print/fill.h"
#include "lower/print/print_c.h"

namespace strata::lower {

namespace {
// The inputs that a kernel asks for ahead: a CPU's own prefetchers fall behind where it goes through so many at once,
// as the steps of optimisers do. Where little is computed, a load more costs more than it saves.
std::vector<const Operand*> fetched_ahead(const Kernel& k) {
  constexpr size_t kMany = 4, kMuch = 16;  // inputs, nodes
  const auto one_value = [&](size_t input) {
    return std::ranges::any_of(k.passes[0].nodes,
                               [&](const Node& n) { return n.op == Op::Load && n.imm == input && n.uniform; });
  };
  std::vector<const Operand*> found;
  for (size_t i = 0; i < k.inputs.size(); ++i)
    if (loads(k.passes[0], i) && !one_value(i)) found.push_back(&k.inputs[i]);
  if (found.size() < kMany || k.passes[0].nodes.size() <= kMuch) found.clear();
  return found;
}
}  // namespace

std::string print_pointwise(const Kernel& k, Isa isa, Needs& needs) {
  bool vector = isa != Isa::Base;
  const Pass& pass = k.passes[0];
  const int64_t wide = wide_lanes(k, pass, isa);
  BodyPrinter body(k, pass, vector, needs, wide);
  std::string out = comment(k, "") + "void " + kernel_symbol(k, isa) +
                    "(char* const* ptr, const i64* step, const void* params, i64 blocks, i64 flags, i32* status) {\n" +
                    frame(k, pass, vector);
  std::string advance, next_row;
  auto operand = [&](const Operand& o, size_t at, bool is_out) {
    const std::string n = std::to_string(at), name = o.name + (is_out ? "_out" : "");
    out += std::string("  ") + (is_out ? "" : "const ") + "char* p_" + name + " = ptr[" + n + "];\n";
    out += "  const i64 s_" + name + " = step[" + n + "];\n";
    advance += "    p_" + name + " += " + (wide ? bytes(wide / 16) + " * " : "") + "s_" + name + ";\n";
    next_row += "    p_" + name + " += s_" + name + ";\n";
  };
  for (size_t i = 0; i < k.outputs.size(); ++i) operand(k.outputs[i], i, true);
  for (size_t i = 0; i < k.inputs.size(); ++i) operand(k.inputs[i], k.outputs.size() + i, false);
  out += body.uniform_part();
  if (vector) out += "  const i64 stream = flags & 1;\n";
  const auto elements = [&](BodyPrinter& printer, int64_t lanes) {
    std::string text = printer.element_part(6);
    for (const Store& s : pass.stores) {
      const Operand& o = k.outputs[s.operand];
      DType t = pass.nodes[s.value].type;
      std::string e = traits(t).cname, p = "p_" + o.name + "_out", v = printer.ref(s.value, vector), store(6, ' ');
      if (lanes) needs.insert("v" + e);
      if (!vector)
        store += "((" + e + "*)" + p + ")[" + (has_pairs(o) ? "2 * l + " + std::to_string(s.part) : "l") + "] = " + v;
      else if (lanes)
        store += "STORES_" + bytes(lanes) + "(v" + e + ", " + p + ", " + printer.block_step(o, "_out") + ", " + v + ")";
      else if (has_pairs(o))
        store += printer.helper("store_pairs", t, true) + "(" + p + " + l * " + bytes(2 * itemsize(t)) + " + " +
                 bytes(s.part * itemsize(t)) + ", " + v + ", LANES)";
      else
        store += "STORE(" + printer.type(t, true) + ", " + p + " + l * " + bytes(itemsize(t)) + ", " + v + ")";
      text += printer.marked(store + ";\n", pass.nodes[s.value].origin);
    }
    return text;
  };
  // Rows, of which each has one value of the inputs in a set of bits; they are near in the cache.
  const auto by_rows = [&](unsigned flag, unsigned inputs) {
    BodyPrinter row(k, pass, vector, needs);
    row.hold(inputs);
    out += "  if (flags & " + std::to_string(flag) + ") {\n    const i64 stream = 0, count = step[" +
           bytes(k.outputs.size() + k.inputs.size()) + "];\n" + (wide ? row.uniform_part() : "") +
           "    for (; blocks > 0; blocks--) {\n";
    for (size_t i = 0; i < k.inputs.size(); ++i)
      if (inputs >> i & 1) {
        const Operand& o = k.inputs[i];
        const std::string t = row.type(o.storage, true);
        out += "      const " + t + " held_" + o.name + " = SPLAT(" + t + ", *(const " + traits(o.storage).cname +
               "*)p_" + o.name + ");\n";
      }
    out +=
        "      for (i64 i = 0; i < count; i += 16) {\n        const i64 end = i + 16 > count ? count : i + 16;\n"
        "        for (i64 l = end - 16; l < end; l += LANES) {\n" +
        elements(row, 0) + "        }\n      }\n" + next_row + "    }\n  }\n";
  };
  if (held_inputs(k, isa)) {
    const int64_t lanes = STRATA_HELD_BYTES / itemsize(k.dtype);
    BodyPrinter other(k, pass, vector, needs, lanes);
    other.hold(held_inputs(k, isa));
    out += "  if (flags & 2) {\n    const i64 second = 1, third = 2, fourth = 3;\n" + other.uniform_part();
    for (const Operand& o : k.inputs)
      if (o.held)
        out += "    const " + other.type(o.storage, true) + " held_" + o.name + " = LOADS_" + bytes(lanes) + "(" +
               body.type(o.storage, true) + ", p_" + o.name + ", " + bytes(16 * itemsize(o.storage)) + ");\n";
    out += "    for (; blocks > 0; blocks--) {\n" + elements(other, lanes) + advance + "    }\n  }\n";
    by_rows(4, held_inputs(k, isa));
  }
  const unsigned forms = row_forms(k, isa);
  if (forms == 8) {
    by_rows(64, unsigned(k.row_values));
  } else if (forms) {
    out += "  if (flags & " + std::to_string(forms << 3) + ") {\n";
    for (unsigned form = 0; form < 3; ++form)
      if (forms >> form & 1) by_rows(8u << form, form < 2 ? 1u << form : 0);
    out += "  }\n";
  }
  // The last blocks of a kernel that takes some at a time are fewer: the last one then stands for those that are not
  // there, and is written as often.
  out += wide ? "  for (; blocks > 0; blocks -= " + bytes(wide / 16) + ") {\n    const i64 second = blocks > 1" +
                    (wide == 64 ? ", third = blocks > 2 ? 2 : second, fourth = blocks > 3 ? 3 : third;\n" : ";\n")
              : "  for (; blocks > 0; blocks--) {\n";
  const std::string element = elements(body, wide);
  // The baseline set has no fma: vectors would be taken apart for each call of it, at several times the size.
  if (!vector) out += std::string("    ") + (element.find("fma_") == std::string::npos ? "ANY_ORDER\n" : "IN_ORDER\n");
  for (size_t i = 0; wide && i < k.inputs.size(); ++i)
    out += "    if (stream) " + fetch(k.inputs[i], "p_" + k.inputs[i].name + " + 4096", wide);
  if (vector && !wide)
    for (const Operand* o : fetched_ahead(k)) out += "    " + fetch(*o, "p_" + o->name + " + 1536", 16);
  out += wide ? "    {\n" : std::string("    for (i64 l = 0; l < 16; l") + (vector ? " += LANES" : "++") + ") {\n";
  out += element + "    }\n" + advance + "  }\n";
  if (vector) out += "  if (stream) __builtin_ia32_sfence();\n";
  return out + "}\n\n";
}

}  // namespace strata::lower
