// Row kernels over short rows, or rows that lie across memory: several rows side by side, as columns, through all
// passes. What a pass reduces it writes, and the runs of a tile are folded by tree T. Operands that do not lie so are
// brought into that form, a tile at a time.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

// False, with nothing done, where that does not fit; the same bits otherwise.
bool run_across(RowsLoop& loop);

}  // namespace strata::eager
