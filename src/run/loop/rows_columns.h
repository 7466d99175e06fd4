// Sums, products and extrema over a dim that is not the innermost one in memory: columns side by side instead of rows
// one by one. Rows that are short, or lie in memory otherwise, are brought into that form a few columns at a time.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

// False, with nothing done, where that does not fit; the same bits otherwise.
bool reduce_columns(RowsLoop& loop);

}  // namespace strata::eager
