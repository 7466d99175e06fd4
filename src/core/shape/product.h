// Rules of matrix products. Named dims: i and j of the result, k summed over, b of a batch. What is added, self, is
// broadcast to the result.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Prepared<S> mm(const Geometry<S>& self, const Geometry<S>& mat2);
template <class S>
Prepared<S> bmm(const Geometry<S>& self, const Geometry<S>& mat2);
template <class S>
Prepared<S> mv(const Geometry<S>& self, const Geometry<S>& vec);
template <class S>
Prepared<S> addmm(const Geometry<S>& self, const Geometry<S>& mat1, const Geometry<S>& mat2);
template <class S>
Prepared<S> baddbmm(const Geometry<S>& self, const Geometry<S>& batch1, const Geometry<S>& batch2);
template <class S>
Prepared<S> addmv(const Geometry<S>& self, const Geometry<S>& mat, const Geometry<S>& vec);

}  // namespace strata::shape
