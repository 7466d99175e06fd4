// Row kernels of several passes over long rows that lie across memory: rows side by side, as columns, through all
// passes, each of which reads memory in pieces of some neighbouring elements of all of them.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

// False, with nothing done, where that does not fit; the same bits otherwise.
bool run_long(RowsLoop& loop);

}  // namespace strata::eager
