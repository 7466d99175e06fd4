#include "core/shape/gather.h"

#include "base/checked.h"

namespace strata::shape {
namespace {

template <class S>
S size_at(const Geometry<S>& t, int64_t dim) {
  return t.dim() ? t.sizes[size_t(dim)] : S(1);
}

}  // namespace

template <class S>
Prepared<S> gather(const Geometry<S>& self, int64_t dim, const Geometry<S>& index) {
  dim = wrap_dim(dim, self.dim());
  if (index.numel() != S(0)) {
    STRATA_CHECK(index.dtype == DType::I64 || index.dtype == DType::I32,
                 "gather(): Expected dtype int32/int64 for index");
    const int64_t rank = std::max<int64_t>(1, self.dim());
    STRATA_CHECK(std::max<int64_t>(1, index.dim()) == rank,
                 "Index tensor must have the same number of dimensions as input tensor");
    for (int64_t d = 0; d < rank; ++d)
      STRATA_CHECK(d == dim || size_at(index, d) <= size_at(self, d), "Size does not match at dimension ", d,
                   " expected index ", index.sizes, " to be no larger than self ", self.sizes, " apart from dimension ",
                   dim);
  }
  Prepared<S> r(index.sizes, self.dtype);
  r.places.push_back(place("n", dim));
  r.places.push_back(place("i", dim));
  r.rank = 1;
  r.dim = dim;
  r.size = size_at(self, dim);
  return r;
}

template <class S>
Prepared<S> index_select(const Geometry<S>& self, int64_t dim, const Geometry<S>& index) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector, got shape ", index.sizes);
  STRATA_CHECK(index.dtype == DType::I64 || index.dtype == DType::I32,
               "index_select(): Expected dtype int32 or int64 for index, got ", index.dtype,
               "; convert it with .long()");
  const S count = index.numel();
  STRATA_CHECK(self.dim() > 0 || count == S(1), "index_select(): Index to scalar can have only 1 value, got ", count,
               " value(s)");
  Prepared<S> r(self.sizes, self.dtype);
  if (self.dim()) r.outputs[0].sizes[size_t(dim)] = count;
  r.places.push_back(place("n", dim));
  r.places.push_back(place("i", dim));
  r.rank = 1;
  r.dim = dim;
  r.size = size_at(self, dim);
  return r;
}

#define STRATA_RULES(S)                                                         \
  template Prepared<S> gather(const Geometry<S>&, int64_t, const Geometry<S>&); \
  template Prepared<S> index_select(const Geometry<S>&, int64_t, const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
