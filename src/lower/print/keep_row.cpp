// Values of the innermost loop that no other loop changes, as positions of a resampled row: where they are dear they
// are computed once for a strip of the loop, and kept. The strips are the outermost loop then: Note [Innermost loop].
#include <bit>

#include "lower/print/nest_printer.h"

namespace strata::lower {

bool NestPrinter::dear(const Node& n) const {
  switch (n.op) {
    case Op::Div:
    case Op::Sqrt:
    case Op::Call:
      return true;
    case Op::Convert:
      return is_float(nest_.nodes[size_t(n.arg[0])].type) && !is_float(n.type);
    default:
      return false;
  }
}

void NestPrinter::plan_kept() {
  const uint64_t loops = nest_.loops();
  if (std::popcount(loops) < 2 || !strips_.empty() || finds_places()) return;
  bool contributes = false;
  for (const NestStore& s : nest_.stores) {
    contributes |= s.into != NestStore::None;
    if (nest_.runs_over(s) != loops) return;
  }
  if (!contributes) return plan_kept(63 - std::countl_zero(loops));
  // Contributions keep the order of all loops: then the values of a whole row are kept, of the last range that has any.
  if (last_) return;
  kept_whole_ = true;
  for (int range = 63; range > std::countr_zero(loops) && kept_.empty(); --range)
    if (loops >> range & 1) plan_kept(range);
}

void NestPrinter::plan_kept(int range) {
  const uint64_t own = uint64_t(1) << range;
  for (const Reduction& r : nest_.reductions)
    if (r.over & own) return;
  // What hangs on the loop alone, reads no memory and sets no status.
  const size_t count = nest_.nodes.size();
  std::vector<char> alone(count, 0), is_dear(count, 0);
  for (size_t v = 0; v < count; ++v) {
    const Node& n = nest_.nodes[v];
    alone[v] = (nest_.depends[v] & ~own) == 0 && n.op != Op::At && n.op != Op::Check && n.op != Op::Reduced &&
               n.op != Op::Carried && n.op != Op::State && !(n.op == Op::Call && n.takes_status());
    if (n.op == Op::Range) continue;
    is_dear[v] = nest_.depends[v] == own && dear(n);
    for (int a : n.arg) {
      if (a < 0) continue;
      alone[v] &= alone[size_t(a)];
      is_dear[v] |= is_dear[size_t(a)];
    }
  }
  auto used = [&](int v) {
    if (v >= 0 && nest_.depends[size_t(v)] == own && alone[size_t(v)] && is_dear[size_t(v)]) kept_[v];
  };
  for (size_t v = 0; v < count; ++v) {
    const Node& n = nest_.nodes[v];
    const bool inside = nest_.depends[v] == own && alone[v];
    for (int a : n.arg)
      if (!inside) used(a);
    if (n.op == Op::Reduced)
      for (int a : nest_.reductions[n.imm].reads()) used(a);
  }
  for (const NestStore& s : nest_.stores)
    for (int v : {s.offset, s.value, s.guard}) used(v);
  if (kept_.empty()) return;
  kept_range_ = range;
  kept_begin_ = kept_whole_ ? parameter(NestParameter::Begin, range, 0) : names_.unique("row");
  kept_end_ = kept_whole_ ? parameter(NestParameter::End, range, 0) : names_.unique("row_end");
  for (auto& [v, name] : kept_) name = names_.unique(value_names_[size_t(v)] + "_row");
  if (!kept_whole_ && lanes_.empty()) plan_shared();
}

// Before the loops over the others: the strip, or the row where it is short enough, and its values.
void NestPrinter::open_kept() {
  const std::string& r = nest_.ranges[size_t(kept_range_)].name;
  const std::string strip = std::to_string(kept_whole_ ? kRow : kStrip);
  const std::string end = parameter(NestParameter::End, kept_range_, 0);
  if (kept_whole_) {
    open("if (" + kept_end_ + " - " + kept_begin_ + " <= " + strip + ") {");
  } else {
    open("for (i64 " + kept_begin_ + " = " + parameter(NestParameter::Begin, kept_range_, 0) + "; " + kept_begin_ +
         " < " + end + "; " + kept_begin_ + " += " + strip + ") {");
    line("const i64 " + kept_end_ + " = " + kept_begin_ + " + " + strip + " < " + end + " ? " + kept_begin_ + " + " +
         strip + " : " + end + ";");
  }
  std::vector<int> roots;
  for (const auto& [v, name] : kept_) {
    roots.push_back(v);
    line(values_.type(nest_.nodes[size_t(v)].type) + " " + name + "[" + strip + "];");
  }
  line(values_.dialect().any_order);
  open("for (i64 " + r + " = " + kept_begin_ + "; " + r + " < " + kept_end_ + "; " + r + "++) {");
  Done done(nest_.nodes.size(), 0);
  statements(roots, uint64_t(1) << kept_range_, done);
  for (const auto& [v, name] : kept_) line(name + "[" + r + " - " + kept_begin_ + "] = " + ref(v) + ";");
  close();
  open_shared();
  keeps_ = true;
}

}  // namespace strata::lower
