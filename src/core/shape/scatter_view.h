// Rules of operators that put a view's elements back: into a copy of self, or into zeros of given sizes. Named dims: n
// of the result, i of the view.
#pragma once
#include <optional>

#include "core/shape/prepared.h"

namespace strata::shape {

// Values at, by: the view's i is the result's at + i * by.
template <class S>
Prepared<S> slice_scatter(const Geometry<S>& self, const Geometry<S>& src, int64_t dim, const std::optional<S>& start,
                          const std::optional<S>& end, const S& step);
template <class S>
Prepared<S> slice_backward(const Geometry<S>& grad, ArrayRef<S> sizes, int64_t dim, const S& start, const S& end,
                           const S& step);
// k: in a window.
template <class S>
Prepared<S> unfold_backward(const Geometry<S>& grad, ArrayRef<S> sizes, int64_t dim, int64_t size, int64_t step);
// a, b: dim1 and dim2 of the result; values down, right.
template <class S>
Prepared<S> diagonal_scatter(const Geometry<S>& self, const Geometry<S>& src, int64_t offset, int64_t dim1,
                             int64_t dim2);
template <class S>
Prepared<S> diag_embed(const Geometry<S>& self, int64_t offset, int64_t dim1, int64_t dim2);

}  // namespace strata::shape
