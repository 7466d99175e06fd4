// Sums and products of float32 and float64 whose rows lie turned, joined in registers: for TurnedRow.
#pragma once
#include <cstdint>

namespace strata::eager {

constexpr int64_t kTurnedLanes = 8;  // parts that are taken at a time

// Whole parts of tree T's 65,536 elements, as columns of a matrix whose rows lie across memory.
struct TurnedTiles {
  const char* first;   // the first column's element of row 0
  int64_t apart;       // bytes from row to row; columns follow each other
  int64_t parts;       // a multiple of kTurnedLanes, 65,536 divided by the matrix's rows columns each
  int64_t begin, end;  // of the first 1,024 rows, those that are read with all that share their positions
  char* accumulators;  // out: [1024 / rows, at least 1][the rows that are read][parts]
};

using TurnedTilesFn = void (*)(const TurnedTiles&);

// For elements that are accumulated in their own dtype, of matrices of that many rows; null where there is none.
TurnedTilesFn turned_tiles(bool product, int64_t width, int64_t rows);

}  // namespace strata::eager
