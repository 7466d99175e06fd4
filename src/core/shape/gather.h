// Rules of operators that read one tensor at places which another one holds.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// Named dims: n of self, i of index and result.
template <class S>
Prepared<S> gather(const Geometry<S>& self, int64_t dim, const Geometry<S>& index);
template <class S>
Prepared<S> index_select(const Geometry<S>& self, int64_t dim, const Geometry<S>& index);

}  // namespace strata::shape
