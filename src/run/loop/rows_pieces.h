// Sums and products of rows that lie in a few pieces, as the channels of a batch of images do.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

// The pieces are joined where they lie: each goes to tree T's positions as columns do. False, with nothing done, where
// that does not fit; the same bits otherwise.
bool join_pieces(RowsLoop& loop);

}  // namespace strata::eager
