#include "core/shape/search.h"

namespace strata::shape {

template <class S>
Prepared<S> search(const Geometry<S>& sequence, const Geometry<S>& values) {
  bool fits = sequence.dim() == 1 || (sequence.dim() > 1 && sequence.dim() == values.dim());
  for (int64_t d = 0; fits && sequence.dim() > 1 && d + 1 < values.dim(); ++d)
    fits = sequence.size_at(d) == values.size_at(d);
  STRATA_CHECK(fits, "_search: expected a sequence of one dim, or lines of values for the lines of a sequence, got ",
               sequence.sizes, " and ", values.sizes);
  STRATA_CHECK(sequence.dtype == values.dtype, "_search: expected one dtype, got ", sequence.dtype, " and ",
               values.dtype);
  Prepared<S> r(values.sizes, DType::I64);
  if (sequence.dim() == 1) r.flat = 1 << 0 | 1 << 2;
  return r;
}

template <class S>
Prepared<S> among(const Geometry<S>& elements, const Geometry<S>& tests) {
  STRATA_CHECK(elements.dtype == tests.dtype, "_among: expected one dtype, got ", elements.dtype, " and ", tests.dtype);
  Prepared<S> r(elements.sizes, DType::Bool);
  r.flat = 1 << 2;
  return r;
}

template <class S>
Prepared<S> bins(const Geometry<S>& weights, const Geometry<S>& index, const S& count) {
  STRATA_CHECK(index.dim() == 1 && weights.dim() == 1 && index.size_at(0) == weights.size_at(0),
               "_bins: expected weights for a line of indices, got ", weights.sizes, " and ", index.sizes);
  STRATA_CHECK(is_integral(index.dtype, false), "_bins: expected integers, got ", index.dtype);
  STRATA_CHECK(count >= S(0), "_bins: expected a number of bins of 0 or more, got ", count);
  const S sizes[] = {count};
  Prepared<S> r({sizes, 1}, weights.dtype);
  r.size = count;
  return r;
}

#define STRATA_RULES(S)                                                \
  template Prepared<S> search(const Geometry<S>&, const Geometry<S>&); \
  template Prepared<S> among(const Geometry<S>&, const Geometry<S>&);  \
  template Prepared<S> bins(const Geometry<S>&, const Geometry<S>&, const S&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
