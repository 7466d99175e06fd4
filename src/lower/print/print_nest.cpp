#include "lower/print/print_nest.h"

#include <algorithm>
#include <map>

#include "lower/fill.h"
#include "lower/print/values.h"

namespace strata::lower {
namespace {

class NestPrinter {
 public:
  NestPrinter(const Nest& nest, const Dialect& dialect, NestHelpers& helpers)
      : nest_(nest), values_(dialect, helpers), helpers_(helpers), parameters_(parameters(nest)) {
    for (const NestParameter& p : parameters_) names_.reserve(p.name);
    for (const NestRange& r : nest.ranges) names_.reserve(r.name);
    for (const NestOperand& o : nest.operands) names_.reserve("p_" + o.label());
    for (const char* word : {"at", "used", "depth", "chunk", "part", "waiting", "lane", "none", "x", "y"})
      names_.reserve(word);
    value_names_.resize(nest.nodes.size());
    for (size_t v = 0; v < nest.nodes.size(); ++v) value_names_[v] = name_of(int(v));
  }

  std::string run() {
    header();
    std::vector<int> roots;
    for (const NestStore& s : nest_.stores) roots.push_back(s.offset), roots.push_back(s.value);
    std::vector<char> done(nest_.nodes.size(), 0);
    loops(0, 0, done);
    text_ += "}\n\n";
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }
  void open(const std::string& text) { line(text), ++depth_; }
  void close() { --depth_, line("}"); }

  void header() {
    text_ = "// " + (nest_.source.empty() ? nest_.name : nest_.source) + "\n//   ";
    for (char c : nest_.text) text_ += c == '\n' ? std::string("\n//   ") : std::string(1, c);
    text_ += std::string("\n") + values_.dialect().function + nest_.symbol() + "(";
    const char* separator = "";
    for (const NestParameter& p : parameters_) {
      std::string type = traits(p.type).cname;
      if (p.kind == NestParameter::Memory)
        type = std::string(values_.dialect().memory) + (p.output ? "void*" : "const void*");
      if (p.kind == NestParameter::Status) type = "i32*";
      text_ += separator + type + " " + p.name;
      separator = ", ";
    }
    text_ += ") {\n";
    for (size_t k = 0; k < nest_.operands.size(); ++k) {
      const NestOperand& o = nest_.operands[k];
      std::string e = traits(storage_node_type(o.storage)).cname, c = o.output ? "" : "const ";
      std::string space = values_.dialect().memory;
      line(c + space + e + "* const p_" + o.label() + " = (" + c + space + e + "*)((" + c + space + "char*)" +
           o.label() + "_memory + " + o.label() + "_byte);");
    }
  }

  std::string name_of(int v) {
    const Node& n = nest_.nodes[v];
    switch (n.op) {
      case Op::Const:
        return "";
      case Op::Range:
        return nest_.ranges[n.imm].name;
      case Op::Extent:
        return parameter(NestParameter::Extent, int(n.imm), 0);
      case Op::Stride:
        return parameter(NestParameter::Stride, int(n.imm), n.part);
      case Op::Param:
        return parameter(NestParameter::Scalar, int(n.imm), n.part);
      default:
        break;
    }
    std::string wish = n.name;
    if (wish.empty() && n.op == Op::At) wish = nest_.operands[n.imm].name + (n.part ? "_im" : "");
    return names_.unique(wish.empty() ? n.type == DType::Bool ? "m" : "t" : wish);
  }

  const std::string& parameter(NestParameter::Kind kind, int index, uint8_t part) const {
    for (const NestParameter& p : parameters_)
      if (p.kind == kind && p.index == index && p.part == part) return p.name;
    STRATA_INTERNAL(false, nest_.name, ": no parameter for a value");
    return parameters_[0].name;
  }

  std::string ref(int v) const {
    const Node& n = nest_.nodes[v];
    return n.op == Op::Const ? values_.constant(n.type, n.imm) : value_names_[v];
  }

  // Nodes that `roots` need, reductions' values among them.
  std::vector<char> needed(const std::vector<int>& roots) const {
    std::vector<char> in(nest_.nodes.size(), 0);
    for (int v : roots)
      if (v >= 0) in[v] = 1;
    for (size_t v = nest_.nodes.size(); v-- > 0;) {
      if (!in[v]) continue;
      const Node& n = nest_.nodes[v];
      for (int a : n.arg)
        if (a >= 0) in[a] = 1;
      if (n.op == Op::Reduced)
        for (int a : nest_.reductions[n.imm].value)
          if (a >= 0) in[a] = 1;
    }
    return in;
  }

  // The statements of all that `roots` need and that is known inside the `ranges` that are open.
  void statements(const std::vector<int>& roots, uint64_t ranges, std::vector<char>& done) {
    const std::vector<char> in = needed(roots);
    for (size_t v = 0; v < nest_.nodes.size(); ++v) {
      const Node& n = nest_.nodes[v];
      if (!in[v] || done[v] || (nest_.depends[v] & ~ranges)) continue;
      done[v] = 1;
      if (n.op == Op::Reduced) {
        reduction(int(n.imm), ranges, done);
      } else if (n.op == Op::At) {
        const NestOperand& o = nest_.operands[n.imm];
        std::string at = is_complex(o.storage) ? "2 * (" + ref(n.arg[0]) + ")" + (n.part ? " + 1" : "") : ref(n.arg[0]);
        std::string read = "p_" + o.label() + "[" + at + "]";
        if (n.arg[1] >= 0) read = ref(n.arg[1]) + " ? " + read + " : 0";
        line("const " + values_.type(n.type) + " " + value_names_[v] + " = " + read + ";");
      } else if (n.op == Op::Check) {
        line("const bit " + value_names_[v] + " = " + ref(n.arg[0]) + ";");
        line("if (!" + value_names_[v] + ") *status |= " + std::to_string(n.imm) + ";");
      } else if (n.op != Op::Const && !n.leaf()) {
        line("const " + values_.type(n.type) + " " + value_names_[v] + " = " +
             values_.expression(n, [&](int a) { return ref(a); }, [&](int a) { return nest_.nodes[a].type; }) + ";");
      }
    }
  }

  // Stores whose ranges are those of the loops that are open; then the next loop.
  void loops(size_t next, uint64_t ranges, std::vector<char> done) {
    const uint64_t all = nest_.loops();
    std::vector<int> roots;
    for (const NestStore& s : nest_.stores) roots.push_back(s.offset), roots.push_back(s.value);
    statements(roots, ranges, done);
    for (const NestStore& s : nest_.stores) {
      if (nest_.depends[s.offset] != ranges) continue;
      const NestOperand& o = nest_.operands[s.operand];
      std::string at = is_complex(o.storage) ? "2 * (" + ref(s.offset) + ")" + (s.part ? " + 1" : "") : ref(s.offset);
      line("p_" + o.label() + "[" + at + "] = " + ref(s.value) + ";");
    }
    for (; next < nest_.ranges.size(); ++next) {
      if (!(all >> next & 1)) continue;
      const std::string& r = nest_.ranges[next].name;
      open("for (i64 " + r + " = " + parameter(NestParameter::Begin, int(next), 0) + "; " + r + " < " +
           parameter(NestParameter::End, int(next), 0) + "; " + r + "++) {");
      loops(next + 1, ranges | uint64_t(1) << next, done);
      close();
      return;
    }
  }

  // ---- reductions

  int node_of(int reduction, uint8_t part) const {
    for (size_t v = 0; v < nest_.nodes.size(); ++v)
      if (nest_.nodes[v].op == Op::Reduced && nest_.nodes[v].imm == uint64_t(reduction) && nest_.nodes[v].part == part)
        return int(v);
    return -1;
  }

  // The loops over a reduction's ranges, with what its values need inside them.
  void reduced_loops(const Reduction& r, uint64_t ranges, const std::vector<char>& done) {
    for (size_t k = 0; k < nest_.ranges.size(); ++k)
      if (r.over >> k & 1) {
        const std::string& name = nest_.ranges[k].name;
        open("for (i64 " + name + " = 0; " + name + " < " + parameter(NestParameter::Extent, int(k), 0) + "; " + name +
             "++) {");
      }
    std::vector<char> inner = done;
    statements({r.value[0], r.value[1]}, ranges | r.over, inner);
  }

  void close_loops(const Reduction& r) {
    for (size_t k = 0; k < nest_.ranges.size(); ++k)
      if (r.over >> k & 1) close();
  }

  void reduction(int number, uint64_t ranges, std::vector<char>& done) {
    const Reduction& r = nest_.reductions[number];
    const int nodes[2] = {node_of(number, 0), node_of(number, 1)};
    for (int v : nodes)
      if (v >= 0) done[v] = 1;
    if (r.combine == Combine::ArgMax || r.combine == Combine::ArgMin) return arg_reduction(r, nodes, ranges, done);
    if (r.combine == Combine::Mul && is_complex(r.accumulator)) return product(r, nodes, ranges, done);
    for (int part = 0; part < 2; ++part) {
      if (nodes[part] < 0) continue;
      const int value = r.value[part];
      const DType t = nest_.nodes[value].type;
      const std::string e = values_.type(t), result = value_names_[nodes[part]];
      Reduction one = r;
      one.value = {value, -1};
      const bool is_real = is_float(t), sums = r.combine == Combine::Add || r.combine == Combine::Mul;
      if (is_real && sums && !r.sequence)
        tree(one, e, result, ranges, done);
      else if (is_real && !sums)
        extremum(one, e, result, ranges, done);
      else
        plain(one, e, result, ranges, done);
    }
  }

  // Element after element: what has no rounding, and sums that are sequences.
  void plain(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges,
             const std::vector<char>& done) {
    const DType t = nest_.nodes[r.value[0]].type;
    const bool first_starts = r.combine == Combine::Max || r.combine == Combine::Min;
    const int start = r.combine == Combine::Mul || r.combine == Combine::And ? 1 : 0;
    line(e + " " + result + " = " + std::to_string(start) + ";");
    if (first_starts) line("bit any_" + result + " = 0;");
    reduced_loops(r, ranges, done);
    const std::string v = ref(r.value[0]);
    switch (r.combine) {
      case Combine::Add:
        line(result + " = " + values_.arithmetic("+", t, result, v) + ";");
        break;
      case Combine::Mul:
        line(result + " = " + values_.arithmetic("*", t, result, v) + ";");
        break;
      case Combine::Or:
        line(result + " |= " + v + ";");
        break;
      case Combine::And:
        line(result + " &= " + v + ";");
        break;
      default:
        line("if (!any_" + result + " || " + v + (r.combine == Combine::Max ? " > " : " < ") + result + ") " + result +
             " = " + v + ";");
        line("any_" + result + " = 1;");
    }
    close_loops(r);
  }

  void tree(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges,
            const std::vector<char>& done) {
    const bool add = r.combine == Combine::Add;
    const Holes holes = {{"e", e},
                         {"r", result},
                         {"v", ref(r.value[0])},
                         {"c", add ? "add" : "mul"},
                         {"o", add ? "+" : "*"},
                         {"none", add ? "0" : "1"}};
    helpers_.add(add ? "tree_add" : "tree_mul", nest_.nodes[r.value[0]].type);
    line(e + " " + result + ";");
    open("{");
    line(fill("$e part[1024], waiting[48];", holes));
    line("i64 used = 0, chunk = 0, depth = 0;");
    reduced_loops(r, ranges, done);
    line(fill("part[used & 1023] = used < 1024 ? $v : part[used & 1023] $o $v;", holes));
    open("if (++used == 65536) {");
    line(fill("depth = push_${c}_$e(waiting, depth, chunk++, fold_${c}_$e(part, 1024));", holes));
    line("used = 0;");
    close();
    close_loops(r);
    line(fill(
        "if (used > 0) depth = push_${c}_$e(waiting, depth, chunk, fold_${c}_$e(part, used < 1024 ? used : 1024));",
        holes));
    line(fill("$r = last_${c}_$e(waiting, depth, $none);", holes));
    close();
  }

  void extremum(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges,
                const std::vector<char>& done) {
    const bool max = r.combine == Combine::Max, wide = nest_.nodes[r.value[0]].type == DType::F64;
    const Holes holes = {{"e", e},
                         {"r", result},
                         {"v", ref(r.value[0])},
                         {"c", max ? "max" : "min"},
                         {"o", max ? ">" : "<"},
                         {"start", std::string(max ? "-" : "") + values_.dialect().infinity[wide]},
                         {"nan", values_.dialect().nan[wide]}};
    helpers_.add(max ? "lanes_max" : "lanes_min", nest_.nodes[r.value[0]].type);
    line(e + " " + result + " = 0;");
    open("{");
    line(fill("$e lane[16];", holes));
    line("i64 used = 0, chunk = 0;");
    line("bit none = 0;");
    reduced_loops(r, ranges, done);
    line(fill("if (used == 0)", holes));
    line(fill("  for (int l = 0; l < 16; l++) lane[l] = $start;", holes));
    line(fill("if ($v $o lane[used & 15]) lane[used & 15] = $v;", holes));
    line(fill("none |= $v != $v;", holes));
    open("if (++used == 65536) {");
    const std::string join = fill("const $e x = lanes_${c}_$e(lane);\nif (chunk++ == 0 || x $o $r) $r = x;\n", holes);
    lines(join);
    line("used = 0;");
    close();
    close_loops(r);
    open("if (used > 0) {");
    lines(join);
    close();
    line(fill("if (none) $r = $nan;", holes));
    close();
  }

  void lines(const std::string& text) {
    for (size_t b = 0; b < text.size();) {
      size_t end = std::min(text.find('\n', b), text.size());
      line(text.substr(b, end - b));
      b = end + 1;
    }
  }

  // The first of equals; the first NaN before all.
  void arg_reduction(const Reduction& r, const int nodes[2], uint64_t ranges, const std::vector<char>& done) {
    const DType t = nest_.nodes[r.value[0]].type;
    const std::string best = names_.unique("best"), v = ref(r.value[0]);
    const std::string at = nodes[1] >= 0 ? value_names_[nodes[1]] : names_.unique("at");
    line(values_.type(t) + " " + best + " = 0;");
    line("i64 " + at + " = 0;");
    open("{");
    line("i64 used = 0;");
    reduced_loops(r, ranges, done);
    std::string better = v + (r.combine == Combine::ArgMax ? " > " : " < ") + best;
    if (is_float(t)) better = "(" + best + " == " + best + " && (" + better + " || " + v + " != " + v + "))";
    line("if (used == 0 || " + better + ") " + best + " = " + v + ", " + at + " = used;");
    line("used++;");
    close_loops(r);
    close();
    if (nodes[0] >= 0) line("const " + values_.type(t) + " " + value_names_[nodes[0]] + " = " + best + ";");
  }

  void product(const Reduction& r, const int nodes[2], uint64_t ranges, const std::vector<char>& done) {
    const DType t = nest_.nodes[r.value[0]].type;
    helpers_.add("tree_product", t);
    std::string result[2];
    for (int p = 0; p < 2; ++p) {
      result[p] = nodes[p] >= 0 ? value_names_[nodes[p]] : names_.unique("product");
      line(values_.type(t) + " " + result[p] + " = " + (p ? "0" : "1") + ";");
    }
    const Holes holes = {
        {"e", values_.type(t)}, {"re", ref(r.value[0])}, {"im", ref(r.value[1])}, {"p", result[0]}, {"q", result[1]}};
    open("{");
    line(fill("$e part[2][1024], waiting[2][48];", holes));
    line("i64 used = 0, chunk = 0, depth = 0;");
    reduced_loops(r, ranges, done);
    line("const i64 at = used & 1023;");
    open("if (used < 1024) {");
    line(fill("part[0][at] = $re;", holes));
    line(fill("part[1][at] = $im;", holes));
    --depth_;
    open("} else {");
    line(fill("const $e x = part[0][at], y = part[1][at];", holes));
    line(fill("part[0][at] = x * $re - y * $im;", holes));
    line(fill("part[1][at] = x * $im + y * $re;", holes));
    close();
    const std::string push =
        "depth = push_product_$e(waiting[0], waiting[1], depth, chunk++, part[0][0], part[1][0]);\n";
    open("if (++used == 65536) {");
    lines(fill("fold_product_$e(part[0], part[1], 1024);\n" + push + "used = 0;\n", holes));
    close();
    close_loops(r);
    open("if (used > 0) {");
    lines(fill("fold_product_$e(part[0], part[1], used < 1024 ? used : 1024);\n" + push, holes));
    close();
    lines(fill(
        "last_product_$e(waiting[0], waiting[1], depth);\nif (depth > 0) $p = waiting[0][0], $q = waiting[1][0];\n",
        holes));
    close();
  }

  const Nest& nest_;
  ValuePrinter values_;
  NestHelpers& helpers_;
  const std::vector<NestParameter> parameters_;
  NamePool names_;
  std::vector<std::string> value_names_;
  std::string text_;
  int depth_ = 1;
};

}  // namespace

std::vector<NestParameter> parameters(const Nest& nest) {
  std::vector<NestParameter> out;
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const NestOperand& o = nest.operands[k];
    out.push_back({NestParameter::Memory, int(k), 0, storage_node_type(o.storage), o.output, o.label() + "_memory"});
    out.push_back({NestParameter::Offset, int(k), 0, DType::I64, false, o.label() + "_byte"});
  }
  for (size_t k = 0; k < nest.ranges.size(); ++k)
    out.push_back({NestParameter::Extent, int(k), 0, DType::I64, false, "n_" + nest.ranges[k].name});
  for (size_t k = 0; k < nest.operands.size(); ++k)
    for (size_t d = 0; d < nest.operands[k].dims.size(); ++d)
      out.push_back({NestParameter::Stride, int(k), uint8_t(d), DType::I64, false,
                     nest.operands[k].label() + "_s" + std::to_string(d)});
  for (size_t k = 0; k < nest.scalars.size(); ++k) {
    const DType t = nest.scalars[k].type, c = storage_node_type(t);
    out.push_back({NestParameter::Scalar, int(k), 0, c, false, nest.scalars[k].name});
    if (is_complex(t)) out.push_back({NestParameter::Scalar, int(k), 1, c, false, nest.scalars[k].name + "_im"});
  }
  for (size_t k = 0; k < nest.ranges.size(); ++k)
    if (nest.loops() >> k & 1) {
      out.push_back({NestParameter::Begin, int(k), 0, DType::I64, false, "begin_" + nest.ranges[k].name});
      out.push_back({NestParameter::End, int(k), 0, DType::I64, false, "end_" + nest.ranges[k].name});
    }
  out.push_back({NestParameter::Status, 0, 0, DType::I32, true, "status"});
  return out;
}

std::string print_nest(const Nest& nest, const Dialect& dialect, NestHelpers& helpers) {
  return NestPrinter(nest, dialect, helpers).run();
}

const char* const kNestArgs = R"C(typedef struct StrataNestArgs {
  void* const* memory;
  const i64 *offset, *extent, *stride;
  const void* params;
  const i64 *begin, *end;
  i32* status;
} StrataNestArgs;
)C";

std::string print_adapter(const Nest& nest) {
  std::string out = "void call_" + nest.symbol() + "(const StrataNestArgs* a) {\n  " + nest.symbol() + "(";
  int stride = 0, loop = 0;
  const char* separator = "";
  for (const NestParameter& p : parameters(nest)) {
    const std::string k = std::to_string(p.index);
    out += separator;
    separator = ", ";
    switch (p.kind) {
      case NestParameter::Memory:
        out += "a->memory[" + k + "]";
        break;
      case NestParameter::Offset:
        out += "a->offset[" + k + "]";
        break;
      case NestParameter::Extent:
        out += "a->extent[" + k + "]";
        break;
      case NestParameter::Stride:
        out += "a->stride[" + std::to_string(stride++) + "]";
        break;
      case NestParameter::Scalar:
        out += "((const " + std::string(traits(p.type).cname) + "*)((const char*)a->params + " +
               std::to_string(16 * p.index) + "))[" + std::to_string(p.part) + "]";
        break;
      case NestParameter::Begin:
        out += "a->begin[" + std::to_string(loop) + "]";
        break;
      case NestParameter::End:
        out += "a->end[" + std::to_string(loop++) + "]";
        break;
      default:
        out += "a->status";
    }
  }
  return out + ");\n}\n\n";
}

std::string print_nests(const std::vector<Nest>& nests, const Dialect& dialect, bool adapters) {
  NestHelpers helpers(dialect);
  std::string functions;
  for (const Nest& n : nests) functions += print_nest(n, dialect, helpers) + (adapters ? print_adapter(n) : "");
  return dialect.head + std::string(adapters ? kNestArgs : "") + helpers.text() + "\n" + functions;
}

}  // namespace strata::lower
