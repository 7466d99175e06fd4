// Rules of scans: the dim i of all operands.
#pragma once
#include <optional>

#include "core/shape/prepared.h"

namespace strata::shape {

// The result has the given dtype; without one integers give int64.
template <class S>
Prepared<S> scan_sum(const char* op, const Geometry<S>& self, int64_t dim, std::optional<DType> dtype);
template <class S>
Prepared<S> scan(const Geometry<S>& self, int64_t dim);
// Values, and where they stand. Complex numbers have no order, but one alone is the largest.
template <class S>
Prepared<S> extremes_so_far(const char* op, const Geometry<S>& self, int64_t dim);
template <class S>
Prepared<S> linear_scan(const Geometry<S>& factor, const Geometry<S>& term, int64_t dim);

}  // namespace strata::shape
