// Rules of operators whose result has elements of one tensor at other places: reversed, rolled, cut out of matrices and
// put into them, repeated, in blocks.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// Group f: the dims that are reversed.
template <class S>
Prepared<S> flip(const Geometry<S>& self, ArrayRef<int64_t> dims);
// Dims a and b of self, i and j in their places of the result; `turns` is k modulo 4.
template <class S>
Prepared<S> rot90(const Geometry<S>& self, int64_t k, ArrayRef<int64_t> dims);
// Group f: the dims that are rolled; by[f] of them in [0, size). Without dims self and the result are one line.
template <class S>
Prepared<S> roll(const Geometry<S>& self, ArrayRef<S> shifts, ArrayRef<int64_t> dims);
// Of matrices, the last two dims; `bound` is the diagonal, or one that keeps as much.
template <class S>
Prepared<S> triangle(const Geometry<S>& self, const S& diagonal, const char* op);
// Dims i and j of self; element d of a diagonal is at (d + down, d + right).
template <class S>
Prepared<S> diagonal_copy(const Geometry<S>& self, int64_t offset, int64_t dim1, int64_t dim2);
// Dim i of self and the result, `at` the place of src there.
template <class S>
Prepared<S> select_scatter(const Geometry<S>& self, const Geometry<S>& src, int64_t dim, const S& index);
template <class S>
Prepared<S> select_backward(const Geometry<S>& grad, ArrayRef<S> sizes, int64_t dim, const S& index);
// The result's dims in (repeats, size) pairs; self has each size once.
template <class S>
Prepared<S> repeat(const Geometry<S>& self, ArrayRef<S> repeats);
// Named dims in the order of memory: self[p..,c,i,j,h,w], result[p..,c,h,i,w,j]; unshuffled the other way round.
template <class S>
Prepared<S> pixel_shuffle(const Geometry<S>& self, int64_t factor);
template <class S>
Prepared<S> pixel_unshuffle(const Geometry<S>& self, int64_t factor);

}  // namespace strata::shape
