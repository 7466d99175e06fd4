#include "lower/print/print_nest.h"

#include <algorithm>
#include <map>

#include "lower/pass/grouped.h"
#include "lower/print/nest_printer.h"

namespace strata::lower {

NestPrinter::NestPrinter(const Nest& nest, const Dialect& dialect, NestHelpers& helpers)
    : nest_(nest), values_(dialect, helpers), helpers_(helpers), parameters_(parameters(nest)) {
  if (dialect.any_order && nest.carries.empty()) plan_innermost();
  if (dialect.group) grouped_ = grouped_ranges(nest);
  for (const NestParameter& p : parameters_) names_.reserve(p.name);
  for (const NestRange& r : nest.ranges) names_.reserve(r.name);
  for (const NestOperand& o : nest.operands) names_.reserve("p_" + o.label());
  for (const char* word :
       {"at",    "used", "depth", "chunk", "part",  "waiting", "lane", "none", "x",   "y",      "found", "first",
        "strip", "stop", "l",     "past",  "block", "most",    "from", "to",   "all", "row_at", "k"})
    names_.reserve(word);
  for (const char* word : {"length", "scratch", "stop", "where", "w", "here", "there", "better", "places"})
    if (grouped_) names_.reserve(word);
  for (const NestStore& s : nest.stores)
    for (const char* word : {"to", "turn", "sum", "re", "im"})
      if (s.into != NestStore::None) names_.reserve(word);
  better_ = names_.unique("better");
  for (const char* word : {"a", "b", "to"})
    if (!nest.carries.empty()) names_.reserve(word);
  for (const Carry& c : nest.carries)
    for (size_t k = 0; k < c.start.size(); ++k)
      carry_names_[&c - nest.carries.data()].push_back(names_.unique(c.names[k]));
  value_names_.resize(nest_.nodes.size());
  for (size_t v = 0; v < nest_.nodes.size(); ++v) value_names_[v] = name_of(int(v));
  if (!strips_.empty()) plan_lanes();
  for (int k : lanes_) strip_names_[k] = names_.unique(combine_name(nest_.reductions[size_t(k)].combine));
  for (const auto& [k, loop] : strips_)
    strip_names_[k] = names_.unique(combine_name(nest_.reductions[size_t(k)].combine));
  if (dialect.any_order && nest.carries.empty()) plan_kept();
}

std::string NestPrinter::run() {
  header();
  bool checks = false;
  for (const Node& n : nest_.nodes) checks |= n.op == Op::Check;
  if (checks) line("i32 found = 0;");
  const Done none(nest_.nodes.size(), 0);
  if (!kept_.empty()) open_kept();
  if (last_) {
    const std::string condition = side_by_side();
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
  if (keeps_ && kept_whole_) {
    keeps_ = false;
    --depth_;
    open("} else {");
    loops(0, 0, none);
    close();
  } else if (keeps_) {
    close();
  }
  if (checks) line("if (found) *status |= found;");
  text_ += "}\n\n";
  return functions_ + text_;
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
    const bool apart = p.kind == NestParameter::Memory && p.output;
    text_ += separator + type + " " + (apart ? values_.dialect().apart : "") + p.name;
    separator = ", ";
  }
  if (grouped_) group_parameters();
  text_ += ") {\n";
  if (grouped_) group_length();
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
    case Op::State: {
      const Carry& c = nest_.carries[n.imm];
      const size_t count = c.start.size();
      if (c.kind == Carry::Blocks) return (n.part < count ? "a[" : "b[") + std::to_string(n.part % count) + "]";
      return carry_names_.at(int(n.imm))[n.part];
    }
    case Op::Carried:
      if (nest_.carries[n.imm].kind == Carry::Repeat) return carry_names_.at(int(n.imm))[n.part];
      break;
    default:
      break;
  }
  std::string wish = n.name;
  if (wish.empty() && n.op == Op::At) wish = nest_.operands[n.imm].name + (n.part ? "_im" : "");
  return names_.unique(wish.empty() ? n.type == DType::Bool ? "m" : "t" : wish);
}

std::string NestPrinter::parameter(NestParameter::Kind kind, int index, uint8_t part) const {
  using Kind = NestParameter::Kind;
  const bool of_range = kind == Kind::Extent || kind == Kind::Begin || kind == Kind::End;
  if (const int64_t fixed = of_range ? nest_.ranges[size_t(index)].fixed : 0)
    return kind == Kind::Begin ? "0" : std::to_string(fixed);
  for (const NestParameter& p : parameters_)
    if (p.kind == kind && p.index == index && p.part == part) return p.name;
  STRATA_INTERNAL(false, nest_.name, ": no parameter for a value");
  return "";
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
    const std::string& index = nest_.ranges[size_t(span_->range)].name;
    const bool one = s.factor < 0 || (span_->any_order && nest_.nodes[size_t(s.factor)].op == Op::Stride);
    const std::string factor = one ? "1" : known_step_ ? std::to_string(known_step_) : ref(s.factor);
    const Node& start = nest_.nodes[size_t(same(s.start))];
    const bool from_zero = start.op == Op::Const && start.imm == 0 && s.sign > 0;
    at = (from_zero ? "" : ref(s.start) + (s.sign < 0 ? " - " : " + ")) + index + (factor == "1" ? "" : " * " + factor);
  } else {
    at = ref(offset);
  }
  return pairs ? "2 * (" + at + ")" + (part ? " + 1" : "") : at;
}

std::vector<int> NestPrinter::roots() const {
  std::vector<int> all;
  for (size_t k = 0; k < nest_.stores.size(); ++k) {
    const NestStore& s = nest_.stores[k];
    if (is_false(s.guard)) continue;
    if (!piece_ || !piece_->writes.count(int(k))) all.push_back(same(s.offset));
    for (int v : {s.value, s.imaginary, s.guard})
      if (v >= 0) all.push_back(same(v));
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
    if (is_kept(int(v)) || is_shared(int(v))) return;
    const bool stepped = piece_ && n.op == Op::At && piece_->reads.count(int(v));
    for (size_t k = stepped ? 1 : 0; k < n.arg.size(); ++k)
      if (n.arg[k] >= 0) in[size_t(same(n.arg[k]))] = 1;
    if (n.op == Op::Reduced && !(side_by_side_ && strips_.count(int(n.imm))) && !is_lane(n))
      for (int a : nest_.reductions[n.imm].reads())
        if (a >= 0) in[size_t(a)] = 1;
    if (n.op == Op::Carried)
      for (int a : nest_.carries[n.imm].reads()) in[size_t(a)] = 1;
  };
  for (size_t v = nest_.nodes.size(); v-- > 0;)
    if (in[v]) mark(v);
  if (!piece_) return in;
  steps(piece_->reads, true);
  steps(piece_->writes, false);
  for (const InnerPiece::Limit& l : piece_->limits)
    for (int v : {l.node, l.divisor})
      if (v >= 0) in[size_t(same(v))] = 1;
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
    if (is_kept(int(v))) {
      line("const " + values_.type(n.type) + " " + name + " = " + kept_at(int(v)) + ";");
    } else if (n.op == Op::Reduced && side_by_side_ && strips_.count(int(n.imm))) {
      const std::string& index = nest_.ranges[size_t(inner_range_)].name;
      line("const " + values_.type(n.type) + " " + name + " = " +
           state_of(int(n.imm), "[" + index + " - strip]")[n.part ? 1 : 0] + ";");
    } else if (is_shared(int(v))) {
      line("const " + values_.type(n.type) + " " + name + " = " + shared_at(int(v)) + ";");
    } else if (is_lane(n)) {
      line("const " + values_.type(n.type) + " " + name + " = " + state_of(int(n.imm), "[lane]")[n.part ? 1 : 0] + ";");
    } else if (n.op == Op::Reduced) {
      reduction(int(n.imm), ranges, done);
    } else if (n.op == Op::Carried) {
      carry(int(n.imm), ranges, done);
    } else if (n.op == Op::At) {
      const NestOperand& o = nest_.operands[n.imm];
      std::string read = "p_" + o.label() + "[" +
                         place(piece_ ? &piece_->reads : nullptr, int(v), n.arg[0], is_complex(o.storage), n.part) +
                         "]";
      if (is_false(n.arg[1]))
        read = "0";
      else if (n.arg[1] >= 0 && nest_.nodes[size_t(same(n.arg[1]))].op != Op::Const)
        read = ref(n.arg[1]) + " ? " + read + " : 0";
      read_ahead(int(v));
      line("const " + values_.type(n.type) + " " + name + " = " + read + ";");
    } else if (n.op == Op::Check) {
      line("const bit " + name + " = " + ref(n.arg[0]) + ";");
      const bool stores = nest_.stores.size() == 1 && nest_.stores[0].guard >= 0 &&
                          same(nest_.stores[0].guard) == int(v) && reports(int(v));
      if (!stores) line("found |= " + name + " ? 0 : " + std::to_string(n.imm) + ";");
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
    if (nest_.runs_over(s) != ranges || is_false(s.guard)) continue;
    const NestOperand& o = nest_.operands[size_t(s.operand)];
    if (s.into != NestStore::None) {
      contribute(int(k));
      continue;
    }
    const bool once = grouped_ && !(ranges & grouped_);  // by the group's first item
    line((once ? "if (lane == 0) p_" : "p_") + o.label() + "[" +
         place(piece_ ? &piece_->writes : nullptr, int(k), s.offset, is_complex(o.storage), s.part) +
         "] = " + ref(s.value) + ";");
  }
}

// Stores whose ranges are those of the loops that are open; then the next loop.
void NestPrinter::loops(size_t next, uint64_t ranges, Done done) {
  const uint64_t all = nest_.loops();
  while (next < nest_.ranges.size() && !(all >> next & 1)) ++next;
  if (side_by_side_ && int(next) == inner_range_) return innermost(ranges, done);
  statements(roots(), ranges, done);
  stores(ranges);
  if (next == nest_.ranges.size()) return;
  if (grouped_ >> next & 1) return group_elements(ranges, done);
  if (!lanes_.empty() && int(next) == inner_range_) return lanes(ranges, done);
  const std::string& r = nest_.ranges[next].name;
  open_carries(next);
  if (keeps_ && kept_whole_ && nest_.ranges[next].fixed) line(values_.dialect().each_lane);
  open("for (i64 " + r + " = " + begin_of(int(next)) + "; " + r + " < " + end_of(int(next)) + "; " + r + "++) {");
  loops(next + 1, ranges | uint64_t(1) << next, done);
  close();
}

// The innermost loop, piece after piece; where it reduces, strip after strip.
void NestPrinter::innermost(uint64_t ranges, Done done) {
  const std::string begin = begin_of(inner_range_), end = end_of(inner_range_);
  if (!strips_.empty()) {
    open("for (i64 strip = " + begin + "; strip < " + end + "; strip += " + std::to_string(kStrip) + ") {");
    line("const i64 stop = strip + " + std::to_string(kStrip) + " < " + end + " ? strip + " + std::to_string(kStrip) +
         " : " + end + ";");
    for (const auto& [k, loop] : strips_) strip_of(k, loop, ranges, done);
  }
  const bool strip = !strips_.empty();
  if (!shared_.empty()) shared_rows(ranges, done);
  shares_ = true;
  const Span span{inner_range_, strip ? "strip" : begin, strip ? "stop" : end, true, ""};
  for (const InnerPiece& piece : last_->pieces()) piece_loop(*last_, piece, span, ranges, done, -1);
  shares_ = false;
  if (!strips_.empty()) close();
}

// The one factor of a piece's reads that is no stride alone; -1 where there is none or are several.
int NestPrinter::step_of(const InnerPiece& piece) const {
  int factor = -1;
  for (const auto& [read, s] : piece.reads) {
    if (s.factor < 0 || nest_.nodes[size_t(s.factor)].op == Op::Stride || s.factor == factor) continue;
    if (factor >= 0) return -1;
    factor = s.factor;
  }
  return factor;
}

void NestPrinter::limits(const InnerPiece& piece) {
  helpers_.add("limits", DType::I64);
  for (const InnerPiece::Limit& l : piece.limits) {
    const std::string quotient = l.divisor >= 0 ? "_quotient" : "", by = l.divisor >= 0 ? ", " + ref(l.divisor) : "";
    line((l.upper ? "past = lesser" + quotient + "(past, " : "first = greater" + quotient + "(first, ") + ref(l.node) +
         by + ");");
  }
}

// A piece of the loop of the stores, or of a reduction.
void NestPrinter::piece_loop(const InnerLoop& loop, const InnerPiece& piece, const Span& span, uint64_t ranges,
                             Done done, int reduction) {
  const uint64_t inside = ranges | uint64_t(1) << span.range;
  const std::string& r = nest_.ranges[size_t(span.range)].name;
  span_ = &span;
  piece_ = &piece;
  std::vector<int> wanted;
  if (reduction < 0)
    wanted = roots();
  else
    for (int v : loop.roots()) wanted.push_back(same(v));
  wanted.insert(wanted.end(), piece.reports.begin(), piece.reports.end());
  // A guard that the loop leaves alone stands before it.
  int guard = reduction >= 0             ? nest_.reductions[size_t(reduction)].guard
              : nest_.stores.size() == 1 ? nest_.stores[0].guard
                                         : -1;
  if (guard >= 0) guard = same(guard);
  const bool known = guard >= 0 && nest_.nodes[size_t(guard)].op == Op::Const;
  const bool before = guard >= 0 && !known && !(nest_.depends[size_t(guard)] >> span.range & 1);
  open("{");
  statements(wanted, ranges, done);
  if (!piece.limits.empty()) {
    line("i64 first = " + span.begin + ", past = " + span.end + ";");
    limits(piece);
  }
  if (before) open("if (" + ref(guard) + ") {");
  guarded_ = before;
  const bool back =
      std::any_of(piece.reads.begin(), piece.reads.end(), [](const auto& read) { return read.second.sign < 0; });
  const char* hint = back ? values_.dialect().backwards : values_.dialect().any_order;
  auto loop_once = [&](Done mine) {
    if (span.any_order && *hint) line(hint);
    open("for (i64 " + r + " = " + (piece.limits.empty() ? span.begin : "first") + "; " + r + " < " +
         (piece.limits.empty() ? span.end : "past") + "; " + r + "++) {");
    statements(wanted, inside, mine);
    if (reduction < 0) {
      stores(inside);
    } else {
      const Reduction& of = nest_.reductions[size_t(reduction)];
      step(reduction, span.where, ref(of.value[0]),
           of.value[1] >= 0 ? (of.below && span.any_order ? "(i32)" : "") + ref(of.value[1]) : "",
           guard < 0 || known || before ? "" : ref(guard));
    }
    close();
  };
  // Steps of 1 and 2, as windows have them, are shuffles of vectors where they are literal.
  const int factor = span.any_order ? step_of(piece) : -1;
  for (known_step_ = 1; factor >= 0 && known_step_ <= 2; ++known_step_) {
    open((known_step_ > 1 ? "} else if (" : "if (") + ref(factor) + " == " + std::to_string(known_step_) + ") {");
    loop_once(done);
    --depth_;
  }
  known_step_ = 0;
  if (factor >= 0) open("} else {");
  loop_once(done);
  if (factor >= 0) close();
  if (before) close();
  close();
  guarded_ = false;
  piece_ = nullptr;
  span_ = nullptr;
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
    const std::string& name = nest.scalars[k].name;
    out.push_back({NestParameter::Scalar, int(k), 0, c, false, is_word(name) ? name + "_" : name});
    if (is_complex(t)) out.push_back({NestParameter::Scalar, int(k), 1, c, false, name + "_im"});
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
