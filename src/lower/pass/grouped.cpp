#include "lower/pass/grouped.h"

namespace strata::lower {

namespace {

bool is_arg(const Reduction& r) { return r.combine == Combine::ArgMax || r.combine == Combine::ArgMin; }

// Whether items may reduce parts of it: no sequence, no chains of products; of chunks no first of equals.
bool divides(const Reduction& r, DType value) {
  const bool pairs = r.combine == Combine::Mul && is_complex(r.accumulator);
  const bool extremum = r.combine == Combine::Max || r.combine == Combine::Min;
  const bool first = r.of_chunks && (is_arg(r) || (extremum && is_float(value)));
  return !r.sequence && !first && !r.multiplies() && !pairs && r.guard < 0 && !(is_arg(r) && r.value[1] >= 0);
}

}  // namespace

uint64_t grouped_ranges(const Nest& nest) {
  uint64_t over = 0;
  if (!nest.carries.empty()) return 0;
  for (size_t v = 0; v < nest.nodes.size(); ++v) {
    if (nest.nodes[v].op != Op::Reduced) continue;
    const Reduction& r = nest.reductions[nest.nodes[v].imm];
    if (!divides(r, nest.nodes[size_t(r.value[0])].type) || (over && r.over != over)) return 0;
    over = r.over;
  }
  const uint64_t rows = nest.loops() & ~over;
  for (size_t v = 0; v < nest.nodes.size(); ++v)
    if (nest.nodes[v].op == Op::Reduced && (nest.depends[v] & over)) return 0;
  for (size_t k = 0; k < nest.ranges.size(); ++k) {
    const uint64_t before = (uint64_t(1) << k) - 1;
    if (!(nest.loops() >> k & 1)) continue;
    if (nest.ranges[k].ordered || nest.ranges[k].whole) return 0;
    if ((rows >> k & 1) && (nest.loops() & over & before)) return 0;  // elements are the innermost loops
  }
  for (const NestStore& s : nest.stores) {
    const uint64_t runs = nest.runs_over(s);
    if (s.into != NestStore::None || s.guard >= 0) return 0;
    if (runs != rows && runs != (rows | over)) return 0;
  }
  return over;
}

}  // namespace strata::lower
