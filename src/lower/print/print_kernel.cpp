// Loops around the passes, the kernels' table, whole files.
#include <algorithm>
#include <bit>
#include <map>

#include "lower/expr/build.h"
#include "lower/kernel_abi.h"
#include "lower/print/fill.h"
#include "lower/print/print_c.h"
#include "lower/print/print_reduce.h"

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

static bool is_sum(const Reduction& r) { return r.combine == Combine::Add || r.combine == Combine::Mul; }

std::string comment(const Kernel& k, const std::string& what) {
  std::string text = "// " + (k.source.empty() ? k.name : k.source) + what + "\n//   ";
  for (char c : k.text) {
    text += c;
    if (c == '\n') text += "//   ";
  }
  while (text.back() == ' ' || text.back() == '/' || text.back() == '\n') text.pop_back();
  return text + "\n";
}

bool reduces_columns(const Kernel& k) {
  constexpr size_t kLongest = 40;  // nodes
  if (!k.across || k.kind != KernelKind::Rows || k.passes.size() != 2 || (k.fused && k.side_by_side)) return false;
  const Pass &first = k.passes[0], &last = k.passes[1];
  if (first.reductions.size() != 1 || !first.stores.empty() || first.nodes.size() > kLongest || last.elementwise ||
      !last.reductions.empty())
    return false;
  const Reduction& r = first.reductions[0];
  const bool extremum = r.combine == Combine::Max || r.combine == Combine::Min;
  if ((!is_sum(r) && !extremum) || r.value[1] >= 0 || first.nodes[size_t(r.value[0])].type == DType::Bool) return false;
  return std::none_of(first.nodes.begin(), first.nodes.end(), [&](const Node& n) {
    const bool one = n.op == Op::Load && n.uniform && !k.inputs[n.imm].broadcast;
    return one || n.op == Op::Index || n.op == Op::Call || n.op == Op::Rare;
  });
}

// Where more is computed a second form is not worth its text.
bool takes_trees(const Kernel& k) {
  constexpr size_t kLongest = 5;  // nodes
  const Pass& pass = k.passes[0];
  return pass.reductions[0].combine == Combine::Add && pass.nodes.size() <= kLongest;
}

bool loads(const Pass& pass, size_t input) {
  return std::ranges::any_of(pass.nodes, [&](const Node& n) { return n.op == Op::Load && n.imm == input; });
}

std::string fetch(const Operand& o, const std::string& at, int64_t lanes) {
  return "FETCH(" + at + ", " + bytes(std::max<int64_t>(lanes * itemsize(o.storage) / 64, 1)) + ");\n";
}

namespace {

bool calls_helpers(const Pass& p) {
  return std::any_of(p.nodes.begin(), p.nodes.end(), [](const Node& n) { return n.op == Op::Call; });
}
bool sets_status(const Kernel& k) {
  auto sets = [](const Node& n) { return n.op == Op::Call && n.takes_status(); };
  return std::any_of(k.passes.begin(), k.passes.end(),
                     [&](const Pass& p) { return std::any_of(p.nodes.begin(), p.nodes.end(), sets); });
}

// Whether an element of a pointwise kernel takes longer than a value that is read at a computed place.
bool costly(const Kernel& k) {
  constexpr int64_t kLooked = 40;  // nodes
  if (k.kind != KernelKind::Pointwise) return false;
  return kLooked <
         std::ranges::count_if(
             k.passes[0].nodes, [](const Node& n) { return n.op != Op::Load && n.op != Op::Const && !n.uniform; });
}

std::string print_pass(const Kernel& k, size_t number, Isa isa, Needs& needs) {
  bool vector = isa != Isa::Base;
  const Pass& pass = k.passes[number];
  const int64_t wide = wide_lanes(k, pass, isa);
  BodyPrinter body(k, pass, vector, needs, wide);
  ReductionPrinter reductions(k, pass, body, vector, needs);
  std::string title = ", pass " + std::to_string(number + 1) + " of " + std::to_string(k.passes.size());
  std::string out = comment(k, title) + "void " + kernel_symbol(k, isa) + "_p" + std::to_string(number) +
                    "(const StrataRowArgs* args) {\n" + frame(k, pass, vector);
  for (size_t i = 0; i < k.outputs.size(); ++i)
    for (const Store& s : pass.stores)
      if (!s.scratch && s.operand == int(i) && s.part == 0)
        out += "  char* p_" + k.outputs[i].name + "_out = args->ptr[" + std::to_string(i) + "];\n";
  constexpr size_t kMuch = 16;  // nodes: beside fewer, it is loads that are waited for, and one more costs
  std::string
      fetches;  // of what the next row's first pass would wait for, and the next pass, where it has little to do
  for (size_t i = 0; i < k.inputs.size(); ++i) {
    if (!loads(pass, i)) continue;
    const std::string name = k.inputs[i].name, at = "[" + std::to_string(k.outputs.size() + i) + "]";
    out += "  const char* p_" + name + " = args->ptr" + at + ";\n";
    if (!wide || number == 0 || k.inputs[i].per_row || !loads(k.passes[0], i)) continue;
    out += "  const char* next_" + name + " = p_" + name + " + (args->next ? args->next" + at + " : 0);\n";
    fetches += "    " + fetch(k.inputs[i], "next_" + name + " + i * " + bytes(itemsize(k.inputs[i].storage)), wide);
  }
  const Pass* later = number + 1 < k.passes.size() ? &k.passes[number + 1] : nullptr;
  if (vector && later && pass.nodes.size() > kMuch && !pass.reductions.empty() && later->reductions.empty() &&
      !is_long(*later))
    for (const Store& s : later->stores) {
      if (s.scratch || k.outputs[s.operand].per_row || s.part > 0) continue;
      const Operand& o = k.outputs[s.operand];
      out += "  const char* to_" + o.name + " = args->ptr[" + std::to_string(s.operand) + "];\n";
      fetches += "    " + fetch(o, "to_" + o.name + " + i * " + bytes(itemsize(o.storage)), 16);
    }
  for (size_t i = 0; i < k.scratch.size(); ++i) {
    auto reads = [&](const Node& n) { return n.op == Op::Scratch && n.imm == i; };
    auto writes = [&](const Store& t) { return t.scratch && t.operand == int(i); };
    if (std::any_of(pass.nodes.begin(), pass.nodes.end(), reads) ||
        std::any_of(pass.stores.begin(), pass.stores.end(), writes))
      out += "  char* scratch_" + std::to_string(i) + " = args->scratch[" + std::to_string(i) + "];\n";
  }
  if (calls_helpers(pass)) out += "  i32* status = args->status;\n";
  const bool loop = !writes_rows(pass);
  if (!loop)
    out += std::string("  ") + (reduces_columns(k) ? "ANY_ORDER" : "IN_ORDER") +
           "\n  for (i64 row = 0; row < args->count; row++) {\n";
  out += body.uniform_part();
  std::string per_row, stores, element = loop ? body.element_part(4) : "";
  for (const Store& s : pass.stores) {
    DType t = pass.nodes[s.value].type;
    std::string e = traits(t).cname;
    bool one = !s.scratch && k.outputs[s.operand].per_row;
    bool pairs = !s.scratch && has_pairs(k.outputs[s.operand]);
    std::string p = s.scratch ? "scratch_" + std::to_string(s.operand) : "p_" + k.outputs[s.operand].name + "_out";
    std::string v = body.ref(s.value, vector && !one), store;
    if (one)
      store = std::string(loop ? "  if (args->first == 0) " : "  ") + "((" + e + "*)" + p + ")[" +
              body.place_of(s.part, pairs) + "] = " + v;
    else if (!vector)
      store = "    ((" + e + "*)" + p + ")[" + (pairs ? "2 * i + " + std::to_string(s.part) : "i") + "] = " + v;
    else if (pairs)
      store = "    " + body.helper("store_pairs", t, true) + "(" + p + " + i * " + bytes(2 * itemsize(t)) + " + " +
              bytes(s.part * itemsize(t)) + ", " + v + ", left)";
    else if (wide || body.ends_nowhere())
      store = "    *(" + body.type(t) + "_u*)(" + p + " + i * " + bytes(itemsize(t)) + ") = " + v;
    else
      store = "    " + body.helper("store", t, true) + "((" + e + "*)" + p + " + i, " + v + ", left)";
    (one ? per_row : stores) += body.marked(store + ";\n", pass.nodes[s.value].origin);
  }
  if (loop) {
    out += "  const i64 count = args->count;\n";
    if (pass.stores.empty())
      out += reductions.groups(fetches, element);
    else if (per_row.empty())
      out += reductions.few(element, stores);
    if (reductions.complete()) return out + "}\n\n";
    element = fetches + element;
    out += reductions.before();
    const std::string blocks = reductions.blocks(element);
    out += blocks + std::string("  for (i64 i = ") + (blocks.empty() ? "0" : "done") + "; i < count; i += " +
           (wide     ? bytes(wide)
            : vector ? "16"
                     : "1") +
           ") {\n";
    if (vector && !wide) out += std::string("    const i64 left = ") + (k.whole(16) ? "16" : "count - i") + ";\n";
    out += element + stores;
  }
  if (!loop) return out + per_row + "  }\n}\n\n";
  return out + reductions.inside() + "  }\n" + reductions.after() + per_row + "}\n\n";
}

// What neighbouring columns have at one element, and how it is joined. Plain sums in vectors have a second form:
// several positions of tree T for several vectors at a time, all in registers.
std::string print_columns(const Kernel& k, Isa isa, Needs& needs) {
  const bool vector = isa != Isa::Base;
  Pass pass = k.passes[0];
  for (Node& n : pass.nodes) {
    if (n.op == Op::Load) n.uniform = k.inputs[n.imm].broadcast && !k.inputs[n.imm].per_row;
    if (!n.leaf())
      n.uniform = std::ranges::all_of(n.arg, [&](int a) { return a < 0 || pass.nodes[size_t(a)].uniform; });
  }
  BodyPrinter body(k, pass, vector, needs);
  ReductionPrinter reductions(k, pass, body, vector, needs);
  const DType t = pass.nodes[pass.reductions[0].value[0]].type;
  const std::string symbol = kernel_symbol(k, isa), v = body.type(t), uniform = body.uniform_part();
  std::string parameters, memory, names, moves;
  for (size_t i = 0; i < k.inputs.size(); ++i) {
    const std::string n = "[" + std::to_string(k.outputs.size() + i) + "]", p = "p_" + k.inputs[i].name,
                      s = "s_" + k.inputs[i].name;
    parameters += ", const char* " + p + ", i64 " + s;
    memory += "  const char* " + p + " = args->ptr" + n + ";\n  const i64 " + s + " = args->step" + n + ";\n";
    names += ", " + p + ", " + s;
    moves += "  " + p + " += at * " + s + ";\n";
  }
  const std::string element = body.element_part(2), value = reductions.value();
  std::string out = comment(k, ", across memory") + "INLINE " + v + " " + symbol + "_at(const StrataColumnArgs* args" +
                    parameters + ", i64 at, i64 i) {\n" + (vector ? "  const i64 left = 16;\n" : "") + moves + uniform +
                    element + "  return " + value + ";\n}\n";
  auto at = [&](const std::string& row) { return symbol + "_at(args" + names + ", " + row + ", i)"; };
  out += "void " + symbol + "_columns(const StrataColumnArgs* args) {\n" + memory +
         "  const i64 columns = args->columns, rows = args->rows, jump = args->jump;\n  " + traits(t).cname +
         "* to = args->to;\n";
  if (!vector)
    return out +
           "  i64 r = 0;\n  if (args->begins) {\n    r = 1;\n    ANY_ORDER\n    for (i64 i = 0; i < columns; i++) "
           "to[i] = " +
           at("0") + ";\n  }\n  for (; r < rows; r++)\n    ANY_ORDER\n    for (i64 i = 0; i < columns; i++) to[i] = " +
           reductions.joined("to[i]", at("r * jump")) +
           ";\n  const char* b = args->lower;\n  for (i64 n = args->lowers; n > 0; n--, b += args->apart)\n    "
           "ANY_ORDER\n"
           "    for (i64 i = 0; i < columns; i++) to[i] = " +
           reductions.joined("((const " + std::string(traits(t).cname) + "*)b)[i]", "to[i]") + ";\n}\n\n";
  if (takes_trees(k)) {
    const Holes holes = {
        {"v", v},
        {"tree", std::to_string(STRATA_COLUMN_TREE)},
        {"vectors", bytes(STRATA_TREE_BYTES / 16 / itemsize(t))},
        {"wide", bytes(STRATA_TREE_BYTES / itemsize(t))},
        {"bytes", bytes(itemsize(t))},
        {"first", at("16 * u")},
        {"add", reductions.joined("g[u]", at("16 * u + r * jump"))},
        {"all", reductions.joined(reductions.joined("g[0]", "g[1]"), reductions.joined("g[2]", "g[3]"))},
        {"lower", reductions.joined("*(const " + v + "_u*)(b + k * sizeof(" + v + "))", "sum[k]")}};
    out += fill(R"C(  if (args->tree == $tree) {
    for (i64 next = 0; next < columns; next += $wide) {
      const i64 first = next + $wide > columns ? columns - $wide : next;
      $v sum[$vectors];
      WHOLLY
      for (i64 k = 0; k < $vectors; k++) {
        const i64 i = first + 16 * k;
        $v g[$tree];
        WHOLLY
        for (i64 u = 0; u < $tree; u++) g[u] = $first;
        if (RARELY(rows > 1))
          for (i64 r = 1; r < rows; r++) {
            WHOLLY
            for (i64 u = 0; u < $tree; u++) g[u] = $add;
          }
        sum[k] = $all;
      }
      const char* b = (const char*)args->lower + first * $bytes;
      for (i64 n = args->lowers; n > 0; n--, b += args->apart) {
        WHOLLY
        for (i64 k = 0; k < $vectors; k++) sum[k] = $lower;
      }
      WHOLLY
      for (i64 k = 0; k < $vectors; k++) *(${v}_u*)(to + first + 16 * k) = sum[k];
    }
    return;
  }
)C",
                holes);
  }
  return out + fill(R"C(  for (i64 i = 0; i < columns; i += 16) {
    $v sum = $first;
    if (!args->begins) sum = $before;
    IN_ORDER
    for (i64 r = 1; r < rows; r++) sum = $next;
    const char* b = (const char*)args->lower + i * $bytes;
    IN_ORDER
    for (i64 n = args->lowers; n > 0; n--, b += args->apart) sum = $lower;
    *(${v}_u*)(to + i) = sum;
  }
}

)C",
                    {{"v", v},
                     {"bytes", bytes(itemsize(t))},
                     {"first", at("0")},
                     {"before", reductions.joined("*(const " + v + "_u*)(to + i)", "sum")},
                     {"next", reductions.joined("sum", at("r * jump"))},
                     {"lower", reductions.joined("*(const " + v + "_u*)b", "sum")}});
}

std::string table_entry(const Kernel& k, Isa isa, std::string& tables) {
  std::string symbol = kernel_symbol(k, isa);
  if (k.borrowed) return "  {\"" + k.name + "\", " + std::to_string(int(k.dtype)) + "},\n";
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
    const bool across = computes_across(k, isa);
    int broadcast = 0;
    auto reads = [&](const Pass& pass) {
      int bits = 0;
      for (size_t i = 0; i < k.inputs.size(); ++i) bits |= loads(pass, i) << i;
      return std::to_string(bits);
    };
    for (size_t i = 0; i < k.inputs.size(); ++i) broadcast |= (k.inputs[i].broadcast && loads(k.passes[0], i)) << i;
    for (size_t p = 0; p < k.passes.size(); ++p) {
      const Pass& pass = k.passes[p];
      const std::string own = symbol + "_p" + std::to_string(p);
      const bool columns = p == 0 && reduces_columns(k), plain = across && plain_input(pass) >= 0;
      tables += std::string(p ? ", " : "") + "{" + own + ", " + std::to_string(pass.reductions.size()) + ", " +
                (pass.elementwise ? "1, " : "0, ") + (columns && isa != Isa::Base && takes_trees(k) ? "1, " : "0, ") +
                std::to_string(plain ? plain_input(pass) + 1 : 0) + ", " + std::to_string(columns ? broadcast : 0) +
                ", " + reads(pass) + ", " + (columns ? symbol + "_columns, " : "0, ") +
                (prints_across(k, p, isa) ? own + "_across}" : "0}");
    }
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
         n(reductions) + n(sets_status(k)) + n(size_t(together(k, isa))) + n(held_inputs(k, isa)) +
         n(row_forms(k, isa)) + n(size_t(std::max<int64_t>(k.row_values, 0))) + n(costly(k)) + n(k.local_scratch) +
         (is_rows ? "0, " : symbol + ", ") + (is_rows ? symbol + "_passes, " : "0, ") +
         (reductions ? symbol + "_reductions, " : "0, ") + symbol + "_types, " + symbol + "_rows},\n";
}

// The text of a function without its comments and its kernel's symbol.
std::string nameless(const std::string& text, const std::string& symbol) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string line = text.substr(at, end - at);
    at = end;
    if (line.starts_with("//")) continue;
    for (size_t p; (p = line.find(symbol)) != std::string::npos;) line.erase(p, symbol.size());
    out += line;
  }
  return out;
}

// A kernel's functions: what follows its symbol in the name, and the text.
std::vector<std::pair<std::string, std::string>> functions_of(const Kernel& k, Isa isa, Needs& needs) {
  if (k.kind == KernelKind::Pointwise) {
    const Stages stages = stages_of(k, isa);
    return {{"", stages.parts.size() > 1 ? print_stages(k, stages, isa, needs) : print_pointwise(k, isa, needs)}};
  }
  std::vector<std::pair<std::string, std::string>> out;
  if (reduces_columns(k)) out.emplace_back("_columns", print_columns(k, isa, needs));
  for (size_t p = 0; p < k.passes.size(); ++p) {
    const std::string suffix = "_p" + std::to_string(p);
    out.emplace_back(suffix, print_pass(k, p, isa, needs));
    if (prints_across(k, p, isa)) out.emplace_back(suffix + "_across", print_across(k, p, isa, needs));
  }
  return out;
}

}  // namespace

std::string print_function(const Kernel& k, Isa isa, Needs& needs) {
  std::string out;
  for (const auto& [suffix, text] : functions_of(k, isa, needs)) out += text;
  return out;
}

std::string print_file(const std::string& family, const std::vector<Kernel>& kernels, Isa isa) {
  Needs needs;
  std::string functions, tables, entries;
  std::map<std::string, std::string> printed;  // text without names -> function
  for (const Kernel& k : kernels) {
    if (k.borrowed) {
      entries += table_entry(k, isa, tables);
      continue;
    }
    const std::string symbol = kernel_symbol(k, isa);
    // Entries that differ in their arguments only (sum, sum.dim_IntList), or in what follows a first pass (sum, mean),
    // share its functions.
    for (const auto& [suffix, text] : functions_of(k, isa, needs)) {
      auto [found, is_new] = printed.emplace(nameless(text, symbol), symbol + suffix);
      functions += is_new ? text : "#define " + symbol + suffix + " " + found->second + "\n\n";
    }
    entries += table_entry(k, isa, tables);
  }
  std::string name = std::string(isa_name(isa)) + "_" + family;
  std::string file =
      "// " + name + ": kernels printed by lower/ from the operator table. Do not edit.\n" + lanes(kernels, isa) +
      prelude(needs) + functions + tables + "static const StrataKernelEntry entries[] = {\n" + entries +
      "};\nconst StrataKernelFile strata_kernels_" + name + " = {entries, " + std::to_string(kernels.size()) + "};\n";
  const bool lines = std::any_of(kernels.begin(), kernels.end(), [](const Kernel& k) { return !k.lines.empty(); });
  return lines ? with_lines(file, "kernel.c") : file;
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
