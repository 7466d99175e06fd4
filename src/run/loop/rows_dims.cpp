// Which dims of a row kernel are walked as one.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "run/loop/rows_loop.h"

namespace strata::eager {

namespace {

void coalesce(DimVec& sizes, std::vector<RowOperand>& operands, DimVec RowOperand::* strides) {
  for (size_t d = 0; d + 1 < sizes.size();) {
    bool joins = true;
    for (RowOperand& o : operands) joins &= (o.*strides)[d] == (o.*strides)[d + 1] * sizes[d + 1];
    if (!joins && sizes[d] != 1 && sizes[d + 1] != 1) {
      ++d;
      continue;
    }
    const size_t outer = sizes[d + 1] == 1 ? d + 1 : d;  // the one whose strides say nothing any more
    sizes[d] *= sizes[d + 1];
    sizes.erase(d + 1);
    for (RowOperand& o : operands) (o.*strides).erase(outer);
  }
}

// As the dims of one operand lie in memory.
void sort_dims(RowsLoop& l, DimVec& sizes, DimVec RowOperand::* strides, size_t operand) {
  for (size_t d = 1; d < sizes.size(); ++d)
    for (size_t k = d; k > 0; --k) {
      const DimVec& steps = l.operands[operand].*strides;
      if (std::abs(steps[k - 1]) >= std::abs(steps[k])) break;
      std::swap(sizes[k - 1], sizes[k]);
      for (RowOperand& o : l.operands) std::swap((o.*strides)[k - 1], (o.*strides)[k]);
    }
}

// Rows may go in any order: as the first input's lie in memory, so that more of their dims join.
void sort_kept(RowsLoop& l) {
  const auto input = std::ranges::find_if(l.operands, [](const RowOperand& o) { return !o.output && !o.per_row; });
  if (input == l.operands.end()) return;
  l.kept_as(size_t(input - l.operands.begin()));
}

// Whether one pass joins elements of one input as they are, all in such a way.
bool joins_all(const StrataKernelEntry& e, bool (*in_any_order)(const StrataReduction&)) {
  return e.passes == 2 && e.pass[0].plain && std::all_of(e.reduction, e.reduction + e.reductions, in_any_order);
}

// The operand of that input.
size_t joined_operand(const StrataKernelEntry& e) { return size_t(e.outputs) + e.pass[0].plain - 1; }

// Reduced dims in the order of memory.
void sort_reduced(RowsLoop& l) { sort_dims(l, l.reduced_sizes, &RowOperand::reduced, joined_operand(*l.entry)); }

// Whole numbers are joined to the same bits in any order.
bool is_whole(const StrataReduction& r) {
  return r.combine < STRATA_COMBINE_ARGMAX && is_integral(static_cast<DType>(r.accumulator), true);
}

bool is_extremum(const StrataReduction& r) {
  return r.combine == STRATA_COMBINE_MAX || r.combine == STRATA_COMBINE_MIN;
}

}  // namespace

int64_t product(const DimVec& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

bool follow_each_other(const DimVec& sizes, const DimVec& strides, int64_t step) {
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d])
    if (sizes[d] != 1 && strides[d] != step) return false;
  return true;
}

int64_t period_of(const DimVec& sizes, const DimVec& strides) {
  size_t d = 0;
  while (d < strides.size() && (strides[d] == 0 || sizes[d] == 1)) ++d;
  if (d == 0 || d == strides.size()) return 0;
  return std::accumulate(sizes.begin() + d, sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t reduced_bytes(const StrataKernelEntry& e) {
  const StrataReduction& r = e.reduction[0];
  const bool alone = e.reductions == 1 && r.combine < STRATA_COMBINE_ARGMAX;
  return alone ? itemsize(static_cast<DType>(r.accumulator)) : 16 * int64_t(e.reductions);
}

void RowsLoop::columns_along(size_t dim) {
  const size_t last = kept_sizes.size() - 1;
  std::swap(kept_sizes[dim], kept_sizes[last]);
  for (RowOperand& o : operands) std::swap(o.kept[dim], o.kept[last]);
}

char* RowsLoop::column_at(const RowOperand& o, int64_t line, int64_t column) const {
  char* p = o.base + column * o.kept.back();
  for (size_t d = kept_sizes.size() - 1; d-- > 0 && line; line /= kept_sizes[d]) p += line % kept_sizes[d] * o.kept[d];
  return p;
}

void RowsLoop::kept_as(size_t operand) { sort_dims(*this, kept_sizes, &RowOperand::kept, operand); }

void RowsLoop::merge_dims() {
  sort_kept(*this);
  if (joins_all(*entry, is_whole)) sort_reduced(*this);
  coalesce(kept_sizes, operands, &RowOperand::kept);
  coalesce(reduced_sizes, operands, &RowOperand::reduced);
}

size_t RowsLoop::kept_dims_of_rows() const {
  DimVec sizes = kept_sizes;
  std::vector<RowOperand> rows(operands.begin(), operands.begin() + entry->outputs);
  std::copy_if(operands.begin() + entry->outputs, operands.end(), std::back_inserter(rows),
               [](const RowOperand& o) { return !o.per_row; });
  coalesce(sizes, rows, &RowOperand::kept);
  return sizes.size();
}

std::optional<RowsLoop> RowsLoop::extremum_as_it_lies() const {
  if (reduced_sizes.size() < 2 || !joins_all(*entry, is_extremum)) return std::nullopt;
  RowsLoop sorted = *this;
  sort_reduced(sorted);
  coalesce(sorted.reduced_sizes, sorted.operands, &RowOperand::reduced);
  const size_t input = joined_operand(*entry);
  if (sorted.operands[input].reduced == operands[input].reduced) return std::nullopt;
  return sorted;
}

bool RowsLoop::gives_zero() const {
  const int64_t count = product(kept_sizes);
  for (size_t k = 0; k < entry->outputs; ++k) {
    const RowOperand& o = operands[k];
    const int64_t width = itemsize(o.dtype);
    for (int64_t i = 0; i < count; ++i) {
      const char* p = o.base;
      int64_t rest = i;
      for (size_t d = kept_sizes.size(); d-- > 0; rest /= kept_sizes[d]) p += rest % kept_sizes[d] * o.kept[d];
      uint64_t bits = 0;
      std::memcpy(&bits, p, size_t(width));
      if (bits << (65 - 8 * width) == 0) return true;  // but for the sign
    }
  }
  return false;
}

}  // namespace strata::eager
