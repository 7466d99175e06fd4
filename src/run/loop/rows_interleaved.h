// Rows whose elements take turns in memory: those of groups of channels, in an image whose channels come last.
#pragma once
#include <vector>

#include "run/loop/rows_loop.h"

namespace strata::eager {

// Whether every operand that is not `direct` lies so, as the kernel takes it: the elements of a row along its first
// dim follow each other, behind them those of the next row, and the same at each place of the other dims.
bool rows_interleaved(const RowsLoop& loop, const std::vector<bool>& direct);

// Gathers `count` neighbouring rows of such an operand into a buffer, one behind the other without a gap, or scatters
// what lies there so.
void stage_interleaved(const RowOperand& operand, const DimVec& sizes, char* base, char* buffer, int64_t count,
                       bool in);

}  // namespace strata::eager
