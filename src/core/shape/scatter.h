// Rules of operators that write or add at places which a tensor holds. Their results begin as self, or as zeros.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// Named dims: n of the result, i of index and source.
template <class S>
Prepared<S> index_add(const Geometry<S>& self, int64_t dim, const Geometry<S>& index, const Geometry<S>& source);
template <class S>
Prepared<S> index_copy(const Geometry<S>& self, int64_t dim, const Geometry<S>& index, const Geometry<S>& source);
template <class S>
Prepared<S> index_fill(const Geometry<S>& self, int64_t dim, const Geometry<S>& index);
// The same, for an index of as many dims as self, which may be smaller than self and src.
template <class S>
Prepared<S> scatter(const Geometry<S>& self, int64_t dim, const Geometry<S>& index, const Geometry<S>& src);
template <class S>
Prepared<S> scatter_value(const Geometry<S>& self, int64_t dim, const Geometry<S>& index);
// The result is one line: n; index and source are another: i.
template <class S>
Prepared<S> put(const Geometry<S>& self, const Geometry<S>& index, const Geometry<S>& source);
// Rows n of the result, positions i of the indices, in one line, whose dims lead those of grad.
template <class S>
Prepared<S> embedding_backward(const Geometry<S>& grad, const Geometry<S>& indices, const S& num_weights);
// Rows b of the result are sums of rows v of self at positions i; and the other way round.
template <class S>
Prepared<S> bag_sum(const Geometry<S>& self, const Geometry<S>& index, const Geometry<S>& bag,
                    const Geometry<S>& factor, const S& bags);
template <class S>
Prepared<S> bag_sum_backward(const Geometry<S>& grad, const Geometry<S>& index, const Geometry<S>& bag,
                             const Geometry<S>& factor, const S& rows);

}  // namespace strata::shape
