// Sums, products and extrema over a dim that is not the innermost one in memory: columns side by side instead of rows
// one by one.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

// False, with nothing done, where that does not fit; the same bits otherwise.
bool reduce_columns(const RowsLoop& loop);

}  // namespace strata::eager
