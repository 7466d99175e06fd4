// How many of bools are true, along rows in memory: no element is widened before it is added.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

// False, with nothing done, where the loop is no sum of bools as int64 along memory; the same numbers otherwise.
bool count_truths(RowsLoop& loop);

}  // namespace strata::eager
