// Rules of Fourier transforms along dims, the last of which is the one with halves: of real values, the results k = 0
// ... n / 2 say all.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Prepared<S> complex_spectrum(const Geometry<S>& self, IntArrayRef dim, int64_t normalization);
// Of real values: all of it, or the half.
template <class S>
Prepared<S> real_spectrum(const Geometry<S>& self, IntArrayRef dim, int64_t normalization, bool onesided);
// The real values of which self is the half.
template <class S>
Prepared<S> from_half_spectrum(const Geometry<S>& self, IntArrayRef dim, int64_t normalization, const S& last_dim_size);

}  // namespace strata::shape
