#include "lower/ir/nest.h"

#include <sstream>

namespace strata::lower {

uint64_t Nest::runs_over(const NestStore& s) const {
  uint64_t all = depends[size_t(s.offset)];
  if (s.into != NestStore::None)
    for (int v : {s.value, s.imaginary, s.guard})
      if (v >= 0) all |= depends[size_t(v)];
  for (size_t k = 0; s.into != NestStore::None && k < ranges.size(); ++k)
    if (ranges[k].ordered) all |= uint64_t(1) << k;
  return all;
}

uint64_t Nest::loops() const {
  uint64_t all = 0;
  for (const NestStore& s : stores) all |= runs_over(s);
  return all;
}

std::string Nest::symbol() const { return name + "_" + traits(dtype).cname; }

void find_dependences(Nest& nest) {
  nest.depends.assign(nest.nodes.size(), 0);
  for (size_t v = 0; v < nest.nodes.size(); ++v) {
    const Node& n = nest.nodes[v];
    uint64_t d = n.op == Op::Range ? uint64_t(1) << n.imm : 0;
    if (n.op == Op::State) d = uint64_t(1) << nest.carries[n.imm].range;
    for (int a : n.arg)
      if (a >= 0) d |= nest.depends[a];
    if (n.op == Op::Reduced) {
      const Reduction& r = nest.reductions[n.imm];
      for (int a : r.reads())
        if (a >= 0) d |= nest.depends[a];
      d &= ~r.over;
      if (r.chunk >= 0) d |= uint64_t(1) << r.chunk;
    }
    if (n.op == Op::Carried) {
      const Carry& c = nest.carries[n.imm];
      for (int a : c.reads()) d |= nest.depends[size_t(a)];
      d = c.kind == Carry::Repeat ? d & ~(uint64_t(1) << c.range) : d | uint64_t(1) << c.range;
    }
    nest.depends[v] = d;
  }
}

namespace {

void verify_carry(const Nest& nest, int v) {
  const Node& n = nest.nodes[size_t(v)];
  const Carry& c = nest.carries[n.imm];
  STRATA_INTERNAL(c.start.size() == c.next.size() && n.part < c.start.size(), nest.name, ": carry ", n.imm,
                  " has no value ", int(n.part));
  for (size_t k = 0; k < c.start.size(); ++k)
    STRATA_INTERNAL(
        c.start[k] < v && c.next[k] < v && nest.nodes[size_t(c.start[k])].type == nest.nodes[size_t(c.next[k])].type,
        nest.name, ": carry ", n.imm, " changes the type of a value, or of what follows it");
  const uint64_t loops = nest.loops(), own = uint64_t(1) << c.range;
  if (c.kind == Carry::Repeat) {
    STRATA_INTERNAL(c.going >= 0 && c.going < v && nest.nodes[size_t(c.going)].type == DType::Bool, nest.name,
                    ": carry ", n.imm, " goes on by what is no condition");
    STRATA_INTERNAL((loops & own) == 0, nest.name, ": carry ", n.imm, " repeats over a loop of the nest");
    return;
  }
  STRATA_INTERNAL((loops & own) && nest.depends[size_t(v)] < 2 * own, nest.name, ": carry ", n.imm,
                  " depends on a loop inside of its own");
  std::vector<char> combines(nest.nodes.size(), 0);
  if (c.kind == Carry::Blocks)
    for (int a : c.next) combines[size_t(a)] = 1;
  for (size_t k = nest.nodes.size(); k-- > 0;) {
    const Node& of = nest.nodes[k];
    if (!combines[k]) continue;
    STRATA_INTERNAL(!of.leaf() || of.op == Op::Const || of.op == Op::State, nest.name, ": scan ", n.imm,
                    " combines more than its values");
    STRATA_INTERNAL(of.op != Op::At && of.op != Op::Reduced && of.op != Op::Carried && of.op != Op::Check, nest.name,
                    ": scan ", n.imm, " reads memory to combine");
    for (int a : of.arg)
      if (a >= 0) combines[size_t(a)] = 1;
  }
}

}  // namespace

void verify(const Nest& nest) {
  const int count = int(nest.nodes.size());
  STRATA_INTERNAL(nest.ranges.size() <= 64, nest.name, ": ", nest.ranges.size(), " ranges; a nest has at most 64");
  for (int v = 0; v < count; ++v) {
    const Node& n = nest.nodes[v];
    auto is = [&](int a, DType t) { return a >= 0 && nest.nodes[a].type == t; };
    for (int a : n.arg) STRATA_INTERNAL(a < v, nest.name, ": node ", v, " uses node ", a, ", which follows it");
    switch (n.op) {
      case Op::Range:
      case Op::Extent:
        STRATA_INTERNAL(n.imm < nest.ranges.size(), nest.name, ": node ", v, " names range ", n.imm);
        break;
      case Op::Stride:
        STRATA_INTERNAL(n.imm < nest.operands.size() && n.part < nest.operands[n.imm].dims.size(), nest.name, ": node ",
                        v, " names dim ", int(n.part), " of operand ", n.imm);
        break;
      case Op::At:
        STRATA_INTERNAL(n.imm < nest.operands.size() && !nest.operands[n.imm].output, nest.name, ": node ", v,
                        " reads operand ", n.imm);
        STRATA_INTERNAL(is(n.arg[0], DType::I64) && (n.arg[1] < 0 || is(n.arg[1], DType::Bool)), nest.name, ": node ",
                        v, " reads at a place that is no integer");
        STRATA_INTERNAL(n.type == storage_node_type(nest.operands[n.imm].storage), nest.name, ": node ", v,
                        " reads another type than its operand's");
        break;
      case Op::Check:
        STRATA_INTERNAL(is(n.arg[0], DType::Bool), nest.name, ": node ", v, " checks what is no condition");
        break;
      case Op::Reduced: {
        STRATA_INTERNAL(n.imm < nest.reductions.size(), nest.name, ": node ", v, " names reduction ", n.imm);
        const Reduction& r = nest.reductions[n.imm];
        STRATA_INTERNAL(r.value[0] >= 0, nest.name, ": reduction ", n.imm, " of nothing");
        for (int a : r.reads()) STRATA_INTERNAL(a < v, nest.name, ": reduction ", n.imm, " of what follows it");
        for (size_t k = 0; k < 2 && r.multiplies(); ++k)
          STRATA_INTERNAL((r.value[k] < 0) == (r.factor[k] < 0) &&
                              (r.value[k] < 0 || is(r.factor[k], nest.nodes[size_t(r.value[k])].type)),
                          nest.name, ": reduction ", n.imm, " multiplies values of two types");
        STRATA_INTERNAL(r.guard < 0 || is(r.guard, DType::Bool), nest.name, ": reduction ", n.imm,
                        " is guarded by what is no condition");
        break;
      }
      case Op::State:
        STRATA_INTERNAL(n.imm < nest.carries.size(), nest.name, ": node ", v, " names carry ", n.imm);
        break;
      case Op::Carried:
        STRATA_INTERNAL(n.imm < nest.carries.size(), nest.name, ": node ", v, " names carry ", n.imm);
        verify_carry(nest, v);
        break;
      case Op::Load:
      case Op::Scratch:
      case Op::Index:
      case Op::Length:
        STRATA_INTERNAL(false, nest.name, ": node ", v, " is of a scheduled kernel: ", op_name(n.op));
        break;
      default:
        break;
    }
  }
  std::vector<bool> written(nest.operands.size(), false);
  for (const NestStore& s : nest.stores) {
    STRATA_INTERNAL(nest.operands[s.operand].output, nest.name, ": a store into input ", s.operand);
    STRATA_INTERNAL(nest.nodes[s.offset].type == DType::I64, nest.name, ": a store at a place that is no integer");
    STRATA_INTERNAL(nest.nodes[s.value].type == storage_node_type(nest.operands[s.operand].storage), nest.name,
                    ": a store of another type than its operand's");
    STRATA_INTERNAL((nest.depends[s.value] & ~nest.runs_over(s)) == 0, nest.name,
                    ": a stored value depends on a range that its place does not");
    STRATA_INTERNAL(s.guard < 0 || (s.into != NestStore::None && nest.nodes[s.guard].type == DType::Bool), nest.name,
                    ": a store is guarded by what is no condition, or is no contribution");
    written[s.operand] = true;
    for (const char* name : {Nest::kTotal, Nest::kCount})
      for (size_t k = 0; s.chains && k < nest.operands.size(); ++k)
        if (nest.operands[k].name == name) written[k] = true;
    for (const NestStore& t : nest.stores) {
      uint64_t a = nest.runs_over(s), b = nest.runs_over(t);
      STRATA_INTERNAL((a & b) == a || (a & b) == b, nest.name, ": two stores run over different ranges");
    }
  }
  for (size_t k = 0; k < nest.operands.size(); ++k)
    STRATA_INTERNAL(written[k] || !nest.operands[k].output, nest.name, ": output ", k, " is never written");
}

const char* into_name(NestStore::Into into) {
  static const char* const names[] = {"", "put", "sum", "prod", "max", "min"};
  return names[into];
}

std::string dump(const Nest& nest) {
  std::ostringstream out;
  auto ranges = [&](uint64_t bits) {
    std::string text;
    for (size_t k = 0; k < nest.ranges.size(); ++k)
      if (bits >> k & 1) text += (text.empty() ? "" : ",") + nest.ranges[k].name;
    return "[" + text + "]";
  };
  out << "nest " << nest.symbol() << '\n';
  for (const NestRange& r : nest.ranges)
    if (const int64_t size = r.known ? r.known : r.fixed) out << " range " << r.name << ' ' << size << '\n';
  for (const NestOperand& o : nest.operands) {
    uint64_t dims = 0;
    for (int d : o.dims) dims |= uint64_t(1) << d;
    out << (o.output ? " out " : " in ") << o.name << ranges(dims) << ' ' << traits(o.storage).cname << '\n';
  }
  for (const Scalar& s : nest.scalars) out << " scalar " << s.name << ' ' << traits(s.type).cname << '\n';
  for (size_t v = 0; v < nest.nodes.size(); ++v) {
    const Node& n = nest.nodes[v];
    out << "  %" << v << ' ' << ranges(nest.depends[v]) << ' ' << traits(n.type).cname << " = " << op_name(n.op);
    if (n.op == Op::Const)
      out << ' ' << int64_t(n.imm);
    else if (n.op == Op::Range || n.op == Op::Extent)
      out << ' ' << nest.ranges[n.imm].name;
    else if (n.op == Op::Stride)
      out << ' ' << nest.operands[n.imm].name << ' ' << int(n.part);
    else if (n.op == Op::At)
      out << ' ' << nest.operands[n.imm].name;
    else if (n.op == Op::Param)
      out << ' ' << nest.scalars[n.imm].name;
    else if (n.op == Op::Call)
      out << ' ' << helper_name(Helper(n.imm));
    else if (n.op == Op::Reduced || n.op == Op::Check || n.op == Op::State || n.op == Op::Carried)
      out << ' ' << n.imm;
    if (n.part && n.op != Op::Stride) out << '.' << int(n.part);
    for (int a : n.arg)
      if (a >= 0) out << " %" << a;
    out << '\n';
  }
  for (size_t k = 0; k < nest.reductions.size(); ++k) {
    const Reduction& r = nest.reductions[k];
    out << "  reduction " << k << ' ' << combine_name(r.combine) << ' ' << traits(r.accumulator).cname << " over "
        << ranges(r.over)
        << (r.multiplies() ? " chains"
            : r.sequence   ? " sequence"
            : r.of_chunks  ? " chunks"
            : r.chunk >= 0 ? " a chunk"
                           : " tree");
    for (int v : r.value)
      if (v >= 0) out << " %" << v;
    for (int v : r.factor)
      if (v >= 0) out << (v == r.factor[0] ? " times %" : " %") << v;
    if (r.guard >= 0) out << " where %" << r.guard;
    out << '\n';
  }
  for (size_t k = 0; k < nest.carries.size(); ++k) {
    const Carry& c = nest.carries[k];
    const char* const kinds[] = {"repeat", "recurrence", "scan"};
    out << "  " << kinds[c.kind] << ' ' << k << " over " << nest.ranges[size_t(c.range)].name << " from";
    for (int v : c.start) out << " %" << v;
    out << " to";
    for (int v : c.next) out << " %" << v;
    if (c.going >= 0) out << " while %" << c.going;
    out << '\n';
  }
  for (const NestStore& s : nest.stores) {
    out << "  store " << nest.operands[s.operand].name;
    if (s.part) out << '.' << int(s.part);
    out << " %" << s.offset;
    if (s.into != NestStore::None) out << ' ' << into_name(s.into);
    out << " %" << s.value;
    if (s.imaginary >= 0) out << " %" << s.imaginary;
    if (s.guard >= 0) out << " where %" << s.guard;
    if (s.chains) out << " in chains";
    out << '\n';
  }
  return out.str();
}

}  // namespace strata::lower
