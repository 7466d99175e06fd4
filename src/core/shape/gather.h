// Rules of operators that read one tensor at places which another one holds.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// Named dims: n of self, i of index and result.
template <class S>
Prepared<S> gather(const Geometry<S>& self, int64_t dim, const Geometry<S>& index);
template <class S>
Prepared<S> index_select(const Geometry<S>& self, int64_t dim, const Geometry<S>& index);
// self is one line: n of self. Dims of index and result are plain.
template <class S>
Prepared<S> take(const Geometry<S>& self, const Geometry<S>& index);
// target has the dims of self but for c, which stands at `dim` of self.
template <class S>
Prepared<S> of_classes(const Geometry<S>& self, int64_t dim, const Geometry<S>& target);
// Rows n of a matrix weight[n,e].
template <class S>
Prepared<S> embedding(const Geometry<S>& weight, const Geometry<S>& indices);

}  // namespace strata::shape
