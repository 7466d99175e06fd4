// Rules of sorts and of selections by rank. Lines run along `dim`; indices are positions in them.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Prepared<S> sort(const Geometry<S>& self, int64_t dim);
template <class S>
Prepared<S> topk(const Geometry<S>& self, const S& k, int64_t dim);
template <class S>
Prepared<S> kthvalue(const Geometry<S>& self, const S& k, int64_t dim, bool keepdim);
// Of all elements: one number.
template <class S>
Prepared<S> median(const char* op, const Geometry<S>& self);
template <class S>
Prepared<S> median_of_lines(const char* op, const Geometry<S>& self, int64_t dim, bool keepdim);
template <class S>
Prepared<S> mode(const Geometry<S>& self, int64_t dim, bool keepdim);

}  // namespace strata::shape
