// Rules of operators that look for values among others.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// values[p..,i] in sequence[p..,n]; in a sequence of one dim values are one line.
template <class S>
Prepared<S> search(const Geometry<S>& sequence, const Geometry<S>& values);
// Elements are plain, the tests one line.
template <class S>
Prepared<S> among(const Geometry<S>& elements, const Geometry<S>& tests);
// A line of weights for one of indices.
template <class S>
Prepared<S> bins(const Geometry<S>& weights, const Geometry<S>& index, const S& count);

}  // namespace strata::shape
