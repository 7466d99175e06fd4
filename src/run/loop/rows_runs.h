// Operands with one value for all elements along a row's innermost dim, as a channel's weight has, which the last pass
// alone reads. Nobody makes whole rows of them: the pass goes run by run, over a few of the value.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

class RowRuns {
 public:
  explicit RowRuns(const RowsLoop& loop);
  explicit operator bool() const { return spread_ != 0; }
  bool spreads(size_t operand) const { return spread_ >> operand & 1; }
  // The last pass over what `args` says, where the pointers of these operands are their first elements in memory.
  void call(const StrataRowArgs& args) const;

 private:
  const RowsLoop& l_;
  uint32_t spread_ = 0;  // a bit for each operand
};

}  // namespace strata::eager
