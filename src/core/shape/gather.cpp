#include "core/shape/gather.h"

#include "base/checked.h"
#include "core/promote.h"

namespace strata::shape {
namespace {

// The index i takes the place of self's dim n.
template <class S>
Prepared<S> indexed_along(Prepared<S> r, const Geometry<S>& self, int64_t dim) {
  r.place("n", dim);
  r.place("i", dim);
  r.rank = 1;
  r.dim = dim;
  r.size = self.size_at(dim);
  return r;
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
      STRATA_CHECK(d == dim || index.size_at(d) <= self.size_at(d), "Size does not match at dimension ", d,
                   " expected index ", index.sizes, " to be no larger than self ", self.sizes, " apart from dimension ",
                   dim);
  }
  Prepared<S> r(index.sizes, self.dtype);
  return indexed_along(std::move(r), self, dim);
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
  return indexed_along(std::move(r), self, dim);
}

template <class S>
Prepared<S> take(const Geometry<S>& self, const Geometry<S>& index) {
  STRATA_CHECK(index.dtype == DType::I64, "take(): Expected a long tensor for index, but got ",
               scalar_type_name(index.dtype));
  Prepared<S> r(index.sizes, self.dtype);
  r.flat = 1 << 1;
  r.size = self.numel();
  STRATA_CHECK_INDEX(r.size != S(0) || index.numel() == S(0), "take(): tried to take from an empty tensor");
  return r;
}

template <class S>
Prepared<S> of_classes(const Geometry<S>& self, int64_t dim, const Geometry<S>& target) {
  dim = wrap_dim(dim, self.dim());
  bool fits = self.dim() == target.dim() + 1;
  for (int64_t d = 0; fits && d < target.dim(); ++d) fits = target.size_at(d) == self.size_at(d < dim ? d : d + 1);
  STRATA_CHECK(fits, "_of_classes: expected a target of the shape of self without dim ", dim, ", got ", target.sizes,
               " and ", self.sizes);
  Prepared<S> r(target.sizes, self.dtype);
  r.place("c", dim);
  r.dim = dim;
  r.size = self.size_at(dim);
  return r;
}

template <class S>
Prepared<S> embedding(const Geometry<S>& weight, const Geometry<S>& indices) {
  STRATA_CHECK(weight.dim() == 2, "'weight' must be 2-D, got shape ", weight.sizes);
  STRATA_CHECK(
      indices.dtype == DType::I64 || indices.dtype == DType::I32,
      "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
      indices.dtype, " instead (while checking arguments for embedding)");
  Prepared<S> r(indices.sizes, weight.dtype);
  r.outputs[0].sizes.push_back(weight.sizes[1]);
  r.size = weight.sizes[0];
  return r;
}

#define STRATA_RULES(S)                                                               \
  template Prepared<S> gather(const Geometry<S>&, int64_t, const Geometry<S>&);       \
  template Prepared<S> index_select(const Geometry<S>&, int64_t, const Geometry<S>&); \
  template Prepared<S> take(const Geometry<S>&, const Geometry<S>&);                  \
  template Prepared<S> of_classes(const Geometry<S>&, int64_t, const Geometry<S>&);   \
  template Prepared<S> embedding(const Geometry<S>&, const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
