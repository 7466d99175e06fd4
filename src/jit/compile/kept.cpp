#include "jit/compile/kept.h"

#include "core/promote.h"
#include "jit/compile/bytes.h"
#include "lower/added.h"
#include "run/kernels.h"
#include "strata/generated/ops/copy.h"

namespace strata::jit {

namespace {

void put(ByteWriter& w, const DimVec& values) {
  w.number(int64_t(values.size()));
  for (int64_t v : values) w.number(v);
}
DimVec dims(ByteReader& r) {
  DimVec values(r.count(), 0);
  for (int64_t& v : values) v = r.number();
  return values;
}

void put(ByteWriter& w, const Scalar& s) {
  w.number(int(s.kind()) << 1 | int(s.is_unsigned64()));
  if (s.is_float() || s.is_complex()) {
    w.real(s.to_complex().real());
    w.real(s.to_complex().imag());
  } else {
    w.number(s.to_int());
  }
}
Scalar scalar(ByteReader& r) {
  const int64_t form = r.number();
  const auto kind = Scalar::Kind(form >> 1);
  if (kind == Scalar::Kind::Float || kind == Scalar::Kind::Complex) {
    const double real = r.real(), imag = r.real();
    return kind == Scalar::Kind::Float ? Scalar(real) : Scalar(std::complex<double>(real, imag));
  }
  const int64_t value = r.number();
  if (kind == Scalar::Kind::Bool) return Scalar(value != 0);
  return form & 1 ? Scalar::from_u64(uint64_t(value)) : Scalar(value);
}

void put(ByteWriter& w, const Operand& o) {
  const auto& [block, offset, sizes, strides, dtype] = o;
  w.number(block);
  w.number(offset);
  put(w, sizes);
  put(w, strides);
  w.number(int(dtype));
}
Operand operand(ByteReader& r) {
  Operand o;
  o.block = int(r.number());
  o.offset = r.number();
  o.sizes = dims(r);
  o.strides = dims(r);
  o.dtype = DType(r.number());
  return o;
}

void put(ByteWriter& w, const std::vector<Operand>& operands) {
  w.number(int64_t(operands.size()));
  for (const Operand& o : operands) put(w, o);
}

void put(ByteWriter& w, const LaunchList& list, const std::vector<FusedOperand>& operands) {
  w.number(int64_t(operands.size()));
  for (const FusedOperand& o : operands) {
    const auto& [memory, strides, per_row, made_by] = o;
    put(w, memory);
    put(w, strides);
    w.number(per_row);
    w.number(made_by ? made_by - list.launches.data() : -1);
  }
}
std::vector<FusedOperand> fused_operands(ByteReader& r, const LaunchList& list) {
  std::vector<FusedOperand> operands(r.count());
  for (FusedOperand& o : operands) {
    o.memory = operand(r);
    o.strides = dims(r);
    o.per_row = r.number();
    const int64_t made_by = r.number();
    o.made_by = made_by < 0 ? nullptr : &list.launches[size_t(made_by)];
  }
  return operands;
}

// The kernel's text is told by its hash.
void put(ByteWriter& w, const LaunchList& list, const Fused& f, const Hash& text) {
  w.number(int64_t(text.a));
  w.number(int64_t(text.b));
  w.number(int(f.kernel.dtype));
  put(w, f.shape);
  put(w, f.reduced);
  put(w, list, f.outs);
  put(w, list, f.ins);
  w.number(int64_t(f.params.size()));
  for (const FusedParam& p : f.params) {
    put(w, p.value);
    w.number(int(p.type));
  }
  for (int n : f.dropped) w.number(n);
}
Hash read(ByteReader& r, const LaunchList& list, Fused& f) {
  Hash text;
  text.a = uint64_t(r.number());
  text.b = uint64_t(r.number());
  f.kernel.dtype = DType(r.number());
  f.shape = dims(r);
  f.reduced = dims(r);
  f.outs = fused_operands(r, list);
  f.ins = fused_operands(r, list);
  f.params.resize(r.count());
  for (FusedParam& p : f.params) {
    p.value = scalar(r);
    p.type = DType(r.number());
  }
  for (int& n : f.dropped) n = int(r.number());
  return text;
}

}  // namespace

std::string plan_key(const LaunchList& list, lower::Isa isa) {
  if (list.elsewhere() || !keeps_plans()) return "";
  ByteWriter w;
  for (int64_t n : {int64_t(isa), int64_t(list.fast), int64_t(default_dtype()), int64_t(list.blocks.size()),
                    int64_t(list.launches.size())})
    w.number(n);
  for (const Block& b : list.blocks) {
    w.number(b.bytes);
    w.number(b.param);
    w.number(b.constant.defined() ? int(b.constant.dtype()) : -1);
    if (!b.constant.defined()) continue;
    if (b.constant.numel() != 1) return "";
    put(w, ops::item(b.constant));
  }
  for (const Launch& l : list.launches) {
    const std::string kernel = l.space ? l.space->op->name : l.kernel();
    if (!lower::added_descriptions(kernel).empty()) return "";
    w.text(l.operator_name());
    w.text(kernel);
    put(w, l.outs);
    put(w, l.ins);
    put(w, l.dims);
    w.number(int64_t(l.scalars.size()));
    for (const Scalar& s : l.scalars) put(w, s);
    for (bool written : l.written) w.number(written);
    int64_t facts = int(l.dtype);
    for (bool fact : {l.draws, bool(l.draw), bool(l.flow), bool(l.space), l.space && l.space->in_pieces,
                      l.space && l.space->guards, l.space && l.space->checks})
      facts = facts << 1 | int64_t(fact);
    w.number(facts << 8 | int64_t(l.kind));
  }
  put(w, list.results);
  return w.take();
}

std::optional<KeptPlan> kept_plan(const LaunchList& list, const std::string& key, lower::Isa isa) {
  const std::optional<std::string> bytes = load_plan(key);
  if (!bytes) return {};
  ByteReader r(*bytes);
  KeptPlan plan;
  const size_t groups = r.count();
  for (size_t i = 0; i < groups; ++i) {
    Group& g = plan.groups.emplace_back();
    plan.programs.emplace_back();
    plan.origins.emplace_back();
    g.launches.resize(r.count());
    for (int& l : g.launches) l = int(r.number());
    g.alone = r.text();
    if (!r.number()) continue;
    const Hash text = read(r, list, g.fused.emplace());
    if (!r.good()) return {};
    plan.programs.back() = known_program(text, isa, &plan.origins.back());
    if (!plan.programs.back()) return {};
  }
  if (!r.good() || !r.at_end()) return {};
  return plan;
}

void keep_plan(const LaunchList& list, const std::string& key, const std::vector<Group>& groups,
               ArrayRef<ProgramRef> programs) {
  ByteWriter w;
  w.number(int64_t(groups.size()));
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& g = groups[i];
    w.number(int64_t(g.launches.size()));
    for (int l : g.launches) w.number(l);
    w.text(g.alone);
    w.number(g.fused.has_value());
    if (g.fused) put(w, list, *g.fused, programs[i]->text_hash());
  }
  store_plan(key, w.take());
}

}  // namespace strata::jit
