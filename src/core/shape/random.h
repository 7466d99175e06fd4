// Rules of random orders, choices and counts, and of choices in order.
#pragma once
#include <optional>

#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Prepared<S> randperm(const S& n, const std::optional<DType>& dtype);
template <class S>
Prepared<S> multinomial(const Geometry<S>& self, const S& samples, bool replacement);
template <class S>
Prepared<S> poisson(const Geometry<S>& rate);
template <class S>
Prepared<S> binomial(const Geometry<S>& count, const Geometry<S>& prob);
// A generator's state as bytes; what is to become one.
template <class S>
Prepared<S> generator_state();
template <class S>
Prepared<S> new_generator_state(const Geometry<S>& state);
// One of r among n in each row.
template <class S>
Prepared<S> choices(const S& n, int64_t r, bool with_replacement);

}  // namespace strata::shape
