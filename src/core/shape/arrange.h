// Sizes of diagonals and triangles, over a size type S.
#pragma once
#include <cstdint>

#include "core/sym.h"

namespace strata::shape {

// Elements of the diagonal `offset` places right of the main one of a rows x columns matrix.
template <class S>
S diagonal_length(const S& rows, const S& columns, int64_t offset) {
  S zero(0);
  if (offset >= 0) return larger(smaller(rows, columns - S(offset)), zero);
  return larger(smaller(rows + S(offset), columns), zero);
}

// self without dim1 and dim2, and the length of their diagonal last.
template <class Sizes>
Sizes diagonal_sizes(const Sizes& self, int64_t offset, int64_t dim1, int64_t dim2) {
  Sizes out;
  for (int64_t d = 0; d < int64_t(self.size()); ++d)
    if (d != dim1 && d != dim2) out.push_back(self[d]);
  out.push_back(diagonal_length(self[dim1], self[dim2], offset));
  return out;
}

// Columns of row `row` on and below the diagonal `offset` places right of the main one.
template <class S>
S triangle_width(const S& row, const S& columns, int64_t offset) {
  return smaller(larger(row + S(1 + offset), S(0)), columns);
}

}  // namespace strata::shape
