// Row kernels over short rows, or rows that lie across memory: several rows side by side, as columns, through all
// passes. What a pass reduces it writes, and the runs of a tile are folded by tree T. Operands that do not lie so are
// brought into that form, a tile at a time.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

constexpr int64_t kLongestAcross = 1024;  // elements of a row: as many as tree T has positions
constexpr int64_t kShortAcross = 32;      // more are faster along the row, if they have to be moved

// False, with nothing done, where that does not fit; the same bits otherwise.
bool run_across(RowsLoop& loop);

}  // namespace strata::eager
