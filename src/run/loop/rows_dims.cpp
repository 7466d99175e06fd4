// Which dims of a row kernel are walked as one.
#include <algorithm>
#include <cstdlib>

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

// Rows may go in any order: as the first input's lie in memory, so that more of their dims join.
void sort_kept(RowsLoop& l) {
  const auto input = std::ranges::find_if(l.operands, [](const RowOperand& o) { return !o.output && !o.per_row; });
  if (input == l.operands.end()) return;
  const auto index = input - l.operands.begin();
  for (size_t d = 1; d < l.kept_sizes.size(); ++d)
    for (size_t k = d; k > 0; --k) {
      const DimVec& steps = l.operands[size_t(index)].kept;
      if (std::abs(steps[k - 1]) >= std::abs(steps[k])) break;
      std::swap(l.kept_sizes[k - 1], l.kept_sizes[k]);
      for (RowOperand& o : l.operands) std::swap(o.kept[k - 1], o.kept[k]);
    }
}

}  // namespace

void RowsLoop::merge_dims() {
  sort_kept(*this);
  coalesce(kept_sizes, operands, &RowOperand::kept);
  coalesce(reduced_sizes, operands, &RowOperand::reduced);
}

}  // namespace strata::eager
