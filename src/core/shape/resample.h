// Rules of resampling: (N, C, spatial...) at other sizes of the last `rank` dims, which are d, h, w in the input and
// z, y, x in the output; k, j, i run over the two neighbours of a position, v, u over four.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Prepared<S> resample(const char* op, int64_t rank, const Geometry<S>& self, ArrayRef<S> output_size);
template <class S>
Prepared<S> resample_backward(const char* op, int64_t rank, const Geometry<S>& grad, ArrayRef<S> output_size,
                              ArrayRef<S> input_size);

// Elements of flattened images (n, c, s, 1) at places (n, t, q): sums over t (n, c, q, 1), their scatter, sums over c.
template <class S>
Prepared<S> weighted_gather(const Geometry<S>& self, const Geometry<S>& place, const Geometry<S>& weight);
template <class S>
Prepared<S> weighted_scatter(const Geometry<S>& grad, const Geometry<S>& place, const Geometry<S>& weight,
                             const S& size);
template <class S>
Prepared<S> gathered_products(const Geometry<S>& self, const Geometry<S>& place, const Geometry<S>& grad);
// Images (n, c, h, w) at points (n, q).
template <class S>
Prepared<S> grid_bilinear(const Geometry<S>& self, const Geometry<S>& x, const Geometry<S>& y);

}  // namespace strata::shape
