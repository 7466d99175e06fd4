// Rules of padding. Groups g of self and f of the result: the dims that are padded. `pad` lists before and after of
// each dim, the last dim first.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// before[f]: where self begins.
template <class S>
Prepared<S> constant_pad(const Geometry<S>& self, ArrayRef<S> pad);
// before[f]; `op` is the operator, of `count` dims.
template <class S>
Prepared<S> reflection_pad(const Geometry<S>& self, ArrayRef<S> pad, int64_t count);
template <class S>
Prepared<S> replication_pad(const Geometry<S>& self, ArrayRef<S> pad, int64_t count);
// skip[f]: where the first period begins; period[f], first[f]: the part of self that is repeated.
template <class S>
Prepared<S> circular_pad(const Geometry<S>& self, ArrayRef<S> pad);

// Their gradients: f of grad, g of the result.
template <class S>
Prepared<S> reflection_pad_backward(const Geometry<S>& grad, const Geometry<S>& self, ArrayRef<S> pad, int64_t count);
template <class S>
Prepared<S> replication_pad_backward(const Geometry<S>& grad, const Geometry<S>& self, ArrayRef<S> pad, int64_t count);
template <class S>
Prepared<S> circular_pad_backward(const Geometry<S>& grad, ArrayRef<S> sizes, ArrayRef<S> pad);

}  // namespace strata::shape
