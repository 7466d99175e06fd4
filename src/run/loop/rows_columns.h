// Sums, products and extrema over a dim that is not the innermost one in memory: columns side by side instead of rows
// one by one. Rows that are short, or lie in memory otherwise, are brought into that form a few columns at a time.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

constexpr int64_t kFewElements = 128;  // of a tile, where that is one of many; fewer are not worth one
constexpr int64_t kSmall = 2048;       // elements in all that are worth it, but where whole columns lie ready
constexpr int64_t kShortColumn = 64;   // elements of a row in one piece, more of which are faster along it

// False, with nothing done, where that does not fit; the same bits otherwise.
bool reduce_columns(RowsLoop& loop);

}  // namespace strata::eager
