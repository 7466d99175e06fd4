// Rules of attention over the last two dims, (..., L, E), (..., S, E) and (..., S, Ev).
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// Refuses what no kind of attention takes. `mask` may be absent.
template <class S>
void check_attention(const Geometry<S>& query, const Geometry<S>& key, const Geometry<S>& value,
                     const Geometry<S>& mask);

// Of four dims, (batch, heads, length, width): the result, in query's order of dims so that what undoes a transposition
// stays a view, and per query a number of the compute dtype. Heads of key and value divide those of query.
template <class S>
Prepared<S> attention(const Geometry<S>& query, const Geometry<S>& key, const Geometry<S>& value, double dropout_p,
                      const Geometry<S>& mask);
template <class S>
Prepared<S> attention_backward(const Geometry<S>& grad, const Geometry<S>& query, const Geometry<S>& key,
                               const Geometry<S>& value, const Geometry<S>& out, const Geometry<S>& logsumexp,
                               double dropout_p, const Geometry<S>& mask);

}  // namespace strata::shape
