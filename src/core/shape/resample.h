// Rules of resampling: (N, C, spatial...) at other sizes of the last `rank` dims, which are d, h, w in the input and
// z, y, x in the output; k, j, i run over the two neighbours of a position.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Prepared<S> resample(const char* op, int64_t rank, const Geometry<S>& self, ArrayRef<S> output_size);
template <class S>
Prepared<S> resample_backward(const char* op, int64_t rank, const Geometry<S>& grad, ArrayRef<S> output_size,
                              ArrayRef<S> input_size);

}  // namespace strata::shape
