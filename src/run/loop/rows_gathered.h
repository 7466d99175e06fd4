// Operands whose rows lie in pieces: they are laid out as rows, or as columns side by side, before a kernel runs, and
// results are put where they belong afterwards. No form of the loop takes short pieces as fast as a copy does.
#pragma once
#include <optional>
#include <vector>

#include "core/call_memory.h"
#include "run/loop/rows_loop.h"

namespace strata::eager {

constexpr int64_t kOften = 4;  // elements of a row beside which one more that is written and read is little

class GatheredRows {
 public:
  // Points such operands of the loop at memory of their own, as the kernel takes them.
  explicit GatheredRows(RowsLoop& loop);
  // What the kernel has made there, to where it belongs.
  void give();

 private:
  struct Result {
    RowOperand own, there;
  };

  // Inputs with one value per row that keep dims apart which everything else walks in one step, or are one value for
  // all rows of a line, follow each other then.
  void spread(RowsLoop& loop);
  void gather(RowsLoop& loop, int near);
  void copy(const RowOperand& from, const RowOperand& to) const;

  DimVec sizes_;  // kept and reduced
  std::optional<CallMemory> memory_, per_row_;
  std::vector<Result> results_;
};

}  // namespace strata::eager
