#include "lower/print/print_nest.h"

#include "lower/print/nest_printer.h"

namespace strata::lower {

NestPrinter::NestPrinter(const Nest& nest, const Dialect& dialect, NestHelpers& helpers)
    : inner_(dialect.any_order ? std::optional<InnerLoop>(nest) : std::nullopt),
      nest_(inner_ ? inner_->nest() : nest),
      values_(dialect, helpers),
      helpers_(helpers),
      parameters_(parameters(nest)) {
  for (const NestParameter& p : parameters_) names_.reserve(p.name);
  for (const NestRange& r : nest.ranges) names_.reserve(r.name);
  for (const NestOperand& o : nest.operands) names_.reserve("p_" + o.label());
  for (const char* word :
       {"at", "used", "depth", "chunk", "part", "waiting", "lane", "none", "x", "y", "found", "first", "past"})
    names_.reserve(word);
  value_names_.resize(nest_.nodes.size());
  for (size_t v = 0; v < nest_.nodes.size(); ++v) value_names_[v] = name_of(int(v));
}

std::string NestPrinter::run() {
  header();
  bool checks = false;
  for (const Node& n : nest_.nodes) checks |= n.op == Op::Check;
  if (checks) line("i32 found = 0;");
  const Done none(nest_.nodes.size(), 0);
  if (inner_ && !inner_->pieces().empty()) {
    std::string condition;
    for (int s : inner_->strides()) condition += (condition.empty() ? "" : " && ") + ref(s) + " == 1";
    side_by_side_ = true;
    if (condition.empty()) {
      loops(0, 0, none);
    } else {
      open("if (" + condition + ") {");
      loops(0, 0, none);
      side_by_side_ = false;
      --depth_;
      open("} else {");
      loops(0, 0, none);
      close();
    }
  } else {
    loops(0, 0, none);
  }
  if (checks) line("if (found) *status |= found;");
  text_ += "}\n\n";
  return std::move(text_);
}

void NestPrinter::lines(const std::string& text) {
  for (size_t b = 0; b < text.size();) {
    size_t end = std::min(text.find('\n', b), text.size());
    line(text.substr(b, end - b));
    b = end + 1;
  }
}

void NestPrinter::header() {
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
    line(c + space + e + "* const p_" + o.label() + " = (" + c + space + e + "*)((" + c + space + "char*)" + o.label() +
         "_memory + " + o.label() + "_byte);");
  }
}

std::string NestPrinter::name_of(int v) {
  const Node& n = nest_.nodes[size_t(v)];
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

const std::string& NestPrinter::parameter(NestParameter::Kind kind, int index, uint8_t part) const {
  for (const NestParameter& p : parameters_)
    if (p.kind == kind && p.index == index && p.part == part) return p.name;
  STRATA_INTERNAL(false, nest_.name, ": no parameter for a value");
  return parameters_[0].name;
}

std::string NestPrinter::ref(int v) const {
  v = same(v);
  const Node& n = nest_.nodes[size_t(v)];
  return n.op == Op::Const ? values_.constant(n.type, n.imm) : value_names_[size_t(v)];
}

// Where an operand is read or written: at its offset, or, where the innermost loop's step is known, from its start on.
std::string NestPrinter::place(const std::map<int, InnerStep>* steps, int of, int offset, bool pairs,
                               uint8_t part) const {
  std::string at;
  if (steps && steps->count(of)) {
    const InnerStep& s = steps->at(of);
    const std::string& index = nest_.ranges[size_t(inner_->range())].name;
    const bool one = s.factor < 0 || nest_.nodes[size_t(s.factor)].op == Op::Stride;
    const Node& start = nest_.nodes[size_t(same(s.start))];
    const bool from_zero = start.op == Op::Const && start.imm == 0 && s.sign > 0;
    at = (from_zero ? "" : ref(s.start) + (s.sign < 0 ? " - " : " + ")) + index + (one ? "" : " * " + ref(s.factor));
  } else {
    at = ref(offset);
  }
  return pairs ? "2 * (" + at + ")" + (part ? " + 1" : "") : at;
}

std::vector<int> NestPrinter::roots() const {
  std::vector<int> all;
  for (size_t s = 0; s < nest_.stores.size(); ++s) {
    if (!piece_ || !piece_->writes.count(int(s))) all.push_back(same(nest_.stores[s].offset));
    all.push_back(same(nest_.stores[s].value));
  }
  return all;
}

// Nodes that `roots` need, reductions' values among them.
NestPrinter::Done NestPrinter::needed(const std::vector<int>& roots) const {
  Done in(nest_.nodes.size(), 0);
  for (int v : roots)
    if (v >= 0) in[size_t(v)] = 1;
  // Starts and factors of known steps follow their users.
  auto steps = [&](const std::map<int, InnerStep>& all, bool read) {
    for (const auto& [of, s] : all) {
      if (read && !in[size_t(of)]) continue;
      in[size_t(s.start)] = 1;
      if (s.factor >= 0) in[size_t(s.factor)] = 1;
    }
  };
  auto mark = [&](size_t v) {
    const Node& n = nest_.nodes[v];
    const bool stepped = piece_ && n.op == Op::At && piece_->reads.count(int(v));
    for (size_t k = stepped ? 1 : 0; k < n.arg.size(); ++k)
      if (n.arg[k] >= 0) in[size_t(same(n.arg[k]))] = 1;
    if (n.op == Op::Reduced)
      for (int a : nest_.reductions[n.imm].value)
        if (a >= 0) in[size_t(a)] = 1;
  };
  for (size_t v = nest_.nodes.size(); v-- > 0;)
    if (in[v]) mark(v);
  if (!piece_) return in;
  steps(piece_->reads, true);
  steps(piece_->writes, false);
  for (const InnerPiece::Limit& l : piece_->limits) in[size_t(same(l.node))] = 1;
  for (size_t v = nest_.nodes.size(); v-- > 0;)
    if (in[v]) mark(v);
  return in;
}

// The statements of all that `roots` need and that is known inside the `ranges` that are open.
void NestPrinter::statements(const std::vector<int>& roots, uint64_t ranges, Done& done) {
  const Done in = needed(roots);
  for (size_t v = 0; v < nest_.nodes.size(); ++v) {
    const Node& n = nest_.nodes[v];
    if (!in[v] || done[v] || (nest_.depends[v] & ~ranges)) continue;
    done[v] = 1;
    const std::string& name = value_names_[v];
    if (n.op == Op::Reduced) {
      reduction(int(n.imm), ranges, done);
    } else if (n.op == Op::At) {
      const NestOperand& o = nest_.operands[n.imm];
      std::string read = "p_" + o.label() + "[" +
                         place(piece_ ? &piece_->reads : nullptr, int(v), n.arg[0], is_complex(o.storage), n.part) +
                         "]";
      if (n.arg[1] >= 0 && nest_.nodes[size_t(same(n.arg[1]))].op != Op::Const)
        read = ref(n.arg[1]) + " ? " + read + " : 0";
      line("const " + values_.type(n.type) + " " + name + " = " + read + ";");
    } else if (n.op == Op::Check) {
      line("const bit " + name + " = " + ref(n.arg[0]) + ";");
      line("found |= " + name + " ? 0 : " + std::to_string(n.imm) + ";");
    } else if (n.op != Op::Const && !n.leaf()) {
      line("const " + values_.type(n.type) + " " + name + " = " +
           values_.expression(
               n, [&](int a) { return ref(a); }, [&](int a) { return nest_.nodes[size_t(a)].type; }) +
           ";");
    }
  }
}

void NestPrinter::stores(uint64_t ranges) {
  for (size_t k = 0; k < nest_.stores.size(); ++k) {
    const NestStore& s = nest_.stores[k];
    if (nest_.depends[size_t(s.offset)] != ranges) continue;
    const NestOperand& o = nest_.operands[size_t(s.operand)];
    line("p_" + o.label() + "[" +
         place(piece_ ? &piece_->writes : nullptr, int(k), s.offset, is_complex(o.storage), s.part) +
         "] = " + ref(s.value) + ";");
  }
}

// Stores whose ranges are those of the loops that are open; then the next loop.
void NestPrinter::loops(size_t next, uint64_t ranges, Done done) {
  const uint64_t all = nest_.loops();
  while (next < nest_.ranges.size() && !(all >> next & 1)) ++next;
  if (side_by_side_ && int(next) == inner_->range()) return innermost(ranges, done);
  statements(roots(), ranges, done);
  stores(ranges);
  if (next == nest_.ranges.size()) return;
  const std::string& r = nest_.ranges[next].name;
  open("for (i64 " + r + " = " + parameter(NestParameter::Begin, int(next), 0) + "; " + r + " < " +
       parameter(NestParameter::End, int(next), 0) + "; " + r + "++) {");
  loops(next + 1, ranges | uint64_t(1) << next, done);
  close();
}

// The innermost loop, piece after piece.
void NestPrinter::innermost(uint64_t ranges, const Done& done) {
  const int range = inner_->range();
  const std::string& r = nest_.ranges[size_t(range)].name;
  const std::string begin = parameter(NestParameter::Begin, range, 0), end = parameter(NestParameter::End, range, 0);
  for (const InnerPiece& piece : inner_->pieces()) {
    piece_ = &piece;
    Done mine = done;
    open("{");
    statements(roots(), ranges, mine);
    if (!piece.limits.empty()) {
      line("i64 first = " + begin + ", past = " + end + ";");
      for (const InnerPiece::Limit& l : piece.limits) {
        const std::string limit = ref(l.node);
        if (l.upper)
          line("if (" + limit + " < past) past = " + limit + ";");
        else
          line("if (" + limit + " > first) first = " + limit + ";");
      }
    }
    if (*values_.dialect().any_order) line(values_.dialect().any_order);
    open("for (i64 " + r + " = " + (piece.limits.empty() ? begin : "first") + "; " + r + " < " +
         (piece.limits.empty() ? end : "past") + "; " + r + "++) {");
    statements(roots(), ranges | uint64_t(1) << range, mine);
    stores(ranges | uint64_t(1) << range);
    close();
    close();
  }
  piece_ = nullptr;
}

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
