// Passes of row kernels for rows side by side (kernel_abi.h, StrataAcrossArgs): lanes are rows, so that nothing is
// folded inside of a vector, and rows of four elements are as fast as long ones. Note [Rows side by side].
#include <algorithm>

#include "lower/print/print_c.h"

namespace strata::lower {

int plain_input(const Pass& pass) {
  if (pass.reductions.empty() || !pass.stores.empty()) return -1;
  int input = -1;
  for (const Reduction& r : pass.reductions) {
    const Node& n = pass.nodes[size_t(r.value[0])];
    if (n.op != Op::Load || n.uniform || (input >= 0 && int(n.imm) != input)) return -1;
    input = int(n.imm);
  }
  return input;
}

namespace {

bool fits_across(const Kernel& k, const Pass& p, Isa isa) {
  // Nodes of a pass, more of which are not worth a second text: in the baseline, which has one lane, few.
  constexpr size_t kLongest[] = {8, 100, 100};
  auto pairs = [](const Operand& o) { return is_complex(o.storage); };
  return p.carries.empty() && p.nodes.size() <= kLongest[int(isa)] &&
         std::ranges::none_of(p.nodes, [](const Node& n) { return n.op == Op::Call; }) &&
         std::ranges::none_of(p.reductions, [](const Reduction& r) { return is_complex(r.accumulator); }) &&
         std::ranges::none_of(k.outputs, pairs) && std::ranges::none_of(k.inputs, pairs);
}

}  // namespace

bool computes_across(const Kernel& k, Isa isa) {
  return k.side_by_side && k.kind == KernelKind::Rows && k.passes.size() > 1 &&
         std::ranges::all_of(k.passes, [&](const Pass& p) { return fits_across(k, p, isa); });
}

bool prints_across(const Kernel& k, size_t pass, Isa isa) {
  if (computes_across(k, isa)) return plain_input(k.passes[pass]) < 0;
  return k.fused && pass > 0 && isa != Isa::Base && reduces_columns(k) && fits_across(k, k.passes[pass], isa);
}

Pass side_by_side(Pass pass) {
  for (Node& n : pass.nodes) {
    n.uniform &= n.op != Op::Reduced && n.op != Op::Load;
    for (int a : n.arg) n.uniform &= a < 0 || pass.nodes[size_t(a)].uniform;
  }
  return pass;
}

// What depends on no element; of the nodes that are computed under one condition all or none.
void BodyPrinter::find_columns() {
  const size_t n = pass_.nodes.size();
  hoisted_.assign(n, 0);
  auto ready = [&](const Node& node) {
    return std::ranges::all_of(node.arg,
                               [&](int a) { return a < 0 || pass_.nodes[size_t(a)].uniform || hoisted_[size_t(a)]; });
  };
  for (size_t v = 0; v < n; ++v) {
    const Node& node = pass_.nodes[v];
    const bool row = node.op == Op::Reduced || (node.op == Op::Load && kernel_.inputs[node.imm].per_row);
    hoisted_[v] = !node.uniform && (row || !node.leaf()) && ready(node);
  }
  for (bool again = true; again;) {
    again = false;
    auto drop = [&](size_t v) {
      again |= hoisted_[v];
      hoisted_[v] = 0;
    };
    for (size_t v = 0; v < n; ++v) {
      if (pass_.nodes[v].uniform) continue;
      if (!ready(pass_.nodes[v])) drop(v);
      for (int group : {owner_[v], group_of_[v]})
        for (size_t w = 0; w < n && group >= 0 && !hoisted_[v]; ++w)
          if (owner_[w] == group || group_of_[w] == group) drop(w);
    }
  }
}

std::string BodyPrinter::column_part(int indent) {
  out_.clear();
  indent_ = indent;
  for (size_t v = 0; v < pass_.nodes.size(); ++v)
    if (hoisted_[v] && owner_[v] < 0) emit(int(v));
  return std::move(out_);
}

namespace {

// What a pass reads and writes, by its place in the arguments.
std::string operands(const Kernel& k, const Pass& pass, size_t number) {
  std::string out;
  auto operand = [&](const std::string& p, const std::string& step, size_t at) {
    out += "  char* " + p + " = args->ptr[" + std::to_string(at) + "];\n";
    if (!step.empty()) out += "  const i64 " + step + " = args->step[" + std::to_string(at) + "];\n";
  };
  auto reads = [&](Op op, auto&& which) {
    return std::ranges::any_of(pass.nodes, [&](const Node& n) { return n.op == op && which(n); });
  };
  auto writes = [&](bool scratch, size_t i) {
    return std::ranges::any_of(pass.stores,
                               [&](const Store& s) { return s.scratch == scratch && s.operand == int(i); });
  };
  size_t at = 0, reductions = 0, before = 0;
  for (size_t i = 0; i < k.outputs.size(); ++i, ++at)
    if (const Operand& o = k.outputs[i]; writes(false, i))
      operand("p_" + o.name + "_out", o.per_row ? "" : "s_" + o.name + "_out", at);
  for (size_t i = 0; i < k.inputs.size(); ++i, ++at)
    if (const Operand& o = k.inputs[i]; reads(Op::Load, [&](const Node& n) { return n.imm == i; }))
      operand("p_" + o.name, o.per_row ? "" : "s_" + o.name, at);
  for (size_t i = 0; i < k.scratch.size(); ++i, ++at)
    if (reads(Op::Scratch, [&](const Node& n) { return n.imm == i; }) || writes(true, i))
      operand("scratch_" + std::to_string(i), "s_scratch_" + std::to_string(i), at);
  for (size_t p = 0; p < k.passes.size(); ++p) {
    if (p < number) before += k.passes[p].reductions.size();
    reductions += k.passes[p].reductions.size();
  }
  for (size_t r = 0; r < before; ++r)
    for (size_t index = 0; index < 2; ++index, ++at)
      if (reads(Op::Reduced, [&](const Node& n) { return n.imm == r && (n.part && !is_float(n.type)) == bool(index); }))
        operand("p_reduced_" + std::to_string(2 * r + index), "", at);
  at += 2 * (reductions - before);
  for (size_t r = 0; r < pass.reductions.size(); ++r, ++at)
    operand("p_reduce_" + std::to_string(r), "s_reduce_" + std::to_string(r), at);
  return out;
}

}  // namespace

std::string print_across(const Kernel& k, size_t number, Isa isa, Needs& needs) {
  const bool vector = isa != Isa::Base;
  const Pass pass = side_by_side(k.passes[number]);
  BodyPrinter body(k, pass, vector, needs, false, true);
  std::string out = comment(k, ", pass " + std::to_string(number + 1) + " of " + std::to_string(k.passes.size()) +
                                   ", rows side by side") +
                    "void " + kernel_symbol(k, isa) + "_p" + std::to_string(number) +
                    "_across(const StrataAcrossArgs* args) {\n" + frame(k, pass, vector);
  out += operands(k, pass, number);
  const bool loop = !writes_rows(pass);
  const std::string uniform = body.uniform_part(), columns = body.column_part(4), element = body.element_part(6);
  std::string per_element, per_row;
  auto store = [&](const std::string& p, int v, std::string& to) {
    const DType t = pass.nodes[size_t(v)].type;
    const std::string value = body.ref(v, vector);
    to += vector ? "      *(" + body.type(t) + "_u*)(" + p + " + i * " + std::to_string(itemsize(t)) + ") = " + value +
                       ";\n"
                 : "      ((" + std::string(traits(t).cname) + "*)(" + p + "))[i] = " + value + ";\n";
  };
  for (const Store& s : pass.stores) {
    const std::string n = std::to_string(s.operand);
    if (s.scratch) {
      store("scratch_" + n + " + at * s_scratch_" + n, s.value, per_element);
    } else {
      const Operand& o = k.outputs[size_t(s.operand)];
      const bool outside = o.per_row && (pass.nodes[size_t(s.value)].uniform || body.in_columns(s.value));
      store("p_" + o.name + "_out" + (o.per_row ? "" : " + at * s_" + o.name + "_out"), s.value,
            outside ? per_row : per_element);
    }
  }
  for (size_t r = 0; r < pass.reductions.size(); ++r) {
    const std::string n = std::to_string(r);
    store("p_reduce_" + n + " + at * s_reduce_" + n, pass.reductions[r].value[0], per_element);
  }
  const std::string elements =
      loop ? std::string(vector ? "    IN_ORDER\n" : "") + "    for (i64 at = 0; at < elements; at++) {\n" : "";
  out += uniform + "  const i64 columns = args->columns;\n";
  if (loop) out += "  const i64 elements = args->elements;\n";
  if (vector)
    return out + "  for (i64 i = 0; i < columns; i += 16) {\n" + columns + elements + element + per_element +
           (loop ? "    }\n" : "") + per_row + "  }\n}\n\n";
  return out + elements + "    ANY_ORDER\n    for (i64 i = 0; i < columns; i++) {\n" + columns + element + per_element +
         per_row + "    }\n" + (loop ? "    }\n" : "") + "}\n\n";
}

}  // namespace strata::lower
