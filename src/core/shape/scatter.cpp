#include "core/shape/scatter.h"

#include "base/checked.h"
#include "core/promote.h"

namespace strata::shape {
namespace {

// i of the operands goes to some n of the result.
template <class S>
Prepared<S> placed_along(const Geometry<S>& self, int64_t dim) {
  Prepared<S> r(self.sizes, self.dtype);
  r.place("n", dim);
  r.place("i", dim);
  r.rank = 1;
  r.dim = dim;
  r.size = self.size_at(dim);
  return r;
}

// A tensor without dim `dim`; of a 0-dim one, without its only dim.
template <class S>
Sizes<S> slice_sizes(const Geometry<S>& t, int64_t dim) {
  Sizes<S> out;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != dim) out.push_back(t.sizes[size_t(d)]);
  return out;
}

bool is_index(DType t) { return t == DType::I64 || t == DType::I32; }

}  // namespace

template <class S>
Prepared<S> index_add(const Geometry<S>& self, int64_t dim, const Geometry<S>& index, const Geometry<S>& source) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK_INDEX(index.dim() <= 1, "index_add_(): Index is supposed to be a vector, but got dim: ", index.dim(),
                     " with type: ", scalar_type_name(index.dtype), " and size: ", index.sizes);
  STRATA_CHECK(source.dtype == self.dtype, "index_add_(): self (", scalar_type_name(self.dtype), ") and source (",
               scalar_type_name(source.dtype), ") must have the same scalar type");
  STRATA_CHECK(dim == 0 || dim < source.dim(), "index_add_(): Indexing dim ", dim,
               " is out of bounds of the source tensor with dim ", source.dim());
  const S rows = source.size_at(dim);
  STRATA_CHECK(index.numel() == rows, "index_add_(): Number of indices (", index.numel(),
               ") should be equal to source.size(dim): (", rows, "), for dim: ", dim);
  STRATA_CHECK(self.dim() == source.dim() && slice_sizes(self, dim) == slice_sizes(source, dim),
               "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
               self.sizes, " source.shape = ", source.sizes);
  STRATA_CHECK(is_index(index.dtype), "index_add_(): Expected dtype int32 or int64 for index, got ", index.dtype,
               "; convert it with .long()");
  return placed_along(self, dim);
}

template <class S>
Prepared<S> index_copy(const Geometry<S>& self, int64_t dim, const Geometry<S>& index, const Geometry<S>& source) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK_INDEX(index.dim() <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  STRATA_CHECK(index.dtype == DType::I64, "index_copy_(): Expected a long tensor for index, but got ",
               scalar_type_name(index.dtype));
  STRATA_CHECK(self.dtype == source.dtype,
               "index_copy_(): self and source expected to have the same dtype, but got (self) ",
               scalar_type_name(self.dtype), " and (source) ", scalar_type_name(source.dtype));
  STRATA_CHECK_INDEX(source.dim() > 0 || index.numel() == S(1),
                     "index_copy_(): When source is scalar, index should have one element (got ", index.numel(), ")");
  STRATA_CHECK_INDEX(
      source.dim() == self.dim() || source.dim() == 0 || self.dim() == 0,
      "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
      "dimensionality (",
      source.dim(), "), destination dimensionality (", self.dim(), ")");
  const Sizes<S> to = slice_sizes(self, dim), from = slice_sizes(source, source.dim() > dim ? dim : 0);
  STRATA_CHECK(to == from,
               "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ", to,
               " at dimension ", dim, " and source slice shape: ", from, " at dimension 0.");
  STRATA_CHECK_INDEX(index.numel() == source.size_at(dim), "index_copy_(): Number of indices (", index.numel(),
                     ") should be equal to source.size(dim) (", source.size_at(dim), ")");
  return placed_along(self, dim);
}

template <class S>
Prepared<S> index_fill(const Geometry<S>& self, int64_t dim, const Geometry<S>& index) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK_INDEX(index.dtype == DType::I64, "index_fill_(): Expected dtype int64 for index.");
  STRATA_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  return placed_along(self, dim);
}

template <class S>
Prepared<S> scatter_value(const Geometry<S>& self, int64_t dim, const Geometry<S>& index) {
  dim = wrap_dim(dim, self.dim());
  if (index.numel() != S(0)) {
    const int64_t rank = std::max<int64_t>(1, self.dim());
    STRATA_CHECK(std::max<int64_t>(1, index.dim()) == rank,
                 "Index tensor must have the same number of dimensions as self tensor");
    for (int64_t d = 0; d < rank; ++d)
      STRATA_CHECK(d == dim || index.size_at(d) <= self.size_at(d), "Expected index ", index.sizes,
                   " to be no larger than self ", self.sizes, " apart from dimension ", dim);
    STRATA_CHECK(is_index(index.dtype), "scatter(): Expected dtype int32/int64 for index");
  }
  return placed_along(self, dim);
}

template <class S>
Prepared<S> scatter(const Geometry<S>& self, int64_t dim, const Geometry<S>& index, const Geometry<S>& src) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK(self.dtype == src.dtype, "scatter(): Expected self.dtype to be equal to src.dtype");
  if (index.numel() != S(0)) {
    const int64_t rank = std::max<int64_t>(1, self.dim());
    STRATA_CHECK(std::max<int64_t>(1, index.dim()) == rank,
                 "Index tensor must have the same number of dimensions as self tensor");
    STRATA_CHECK(std::max<int64_t>(1, src.dim()) == rank,
                 "Index tensor must have the same number of dimensions as src tensor");
    for (int64_t d = 0; d < rank; ++d) {
      const bool fits = (d == dim || index.size_at(d) <= self.size_at(d)) && index.size_at(d) <= src.size_at(d);
      STRATA_CHECK(fits, "Expected index ", index.sizes, " to be no larger than self ", self.sizes,
                   " apart from dimension ", dim, " and to be no larger size than src ", src.sizes);
    }
    STRATA_CHECK(is_index(index.dtype), "scatter(): Expected dtype int32/int64 for index");
  }
  return placed_along(self, dim);
}

template <class S>
Prepared<S> put(const Geometry<S>& self, const Geometry<S>& index, const Geometry<S>& source) {
  STRATA_CHECK(index.dtype == DType::I64, "put_(): Expected a long tensor for index, but got ",
               scalar_type_name(index.dtype));
  STRATA_CHECK(self.dtype == source.dtype,
               "put_(): self and source expected to have the same dtype, but got self.dtype = ",
               scalar_type_name(self.dtype), " and source.dtype = ", scalar_type_name(source.dtype));
  STRATA_CHECK_INDEX(index.numel() == source.numel(),
                     "put_(): Expected source and index to have the same number of elements, but got "
                     "source.numel() = ",
                     source.numel(), ", index.numel() = ", index.numel());
  Prepared<S> r(self.sizes, self.dtype);
  r.flat = 7;
  r.size = self.numel();
  STRATA_CHECK_INDEX(r.size != S(0) || index.numel() == S(0), "put_(): tried to take from an empty tensor");
  return r;
}

template <class S>
Prepared<S> embedding_backward(const Geometry<S>& grad, const Geometry<S>& indices, const S& num_weights) {
  STRATA_CHECK(is_index(indices.dtype),
               "Expected tensor for argument #1 'indices' to have one of "
               "the following scalar types: Long, Int; but got ",
               indices.dtype, " instead (while checking arguments for embedding_backward)");
  const size_t lead = size_t(indices.dim());
  STRATA_CHECK(grad.dim() > indices.dim() && grad.sizes.slice(0, lead) == indices.sizes,
               "embedding_dense_backward: expected grad_output of shape [", indices.sizes, ", ...], got ", grad.sizes);
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(grad.dtype),
                               "embedding_dense_backward: expected a floating dtype, got ", grad.dtype);
  Sizes<S> sizes;
  sizes.push_back(num_weights);
  for (size_t d = lead; d < size_t(grad.dim()); ++d) sizes.push_back(grad.sizes[d]);
  Prepared<S> r(sizes, grad.dtype);
  r.flat = 1 << 2;
  r.joins.push_back({1, 0, int64_t(lead)});
  r.place("n", 0);
  r.place("i", 0);
  r.size = num_weights;
  return r;
}

namespace {
template <class S>
Prepared<S> bags(const char* op, const Geometry<S>& rows, const Geometry<S>& index, const Geometry<S>& bag,
                 const Geometry<S>& factor, const S& count, const S& table) {
  STRATA_CHECK(is_index(index.dtype) && is_index(bag.dtype), op, ": expected index and bag of int64 or int32, got ",
               index.dtype, " and ", bag.dtype);
  STRATA_CHECK(rows.dim() == 2 && index.dim() == 1 && index.sizes == bag.sizes && index.sizes == factor.sizes, op,
               ": expected rows (n, columns) and an index, a bag and a factor for each position, got ", rows.sizes,
               ", ", index.sizes, ", ", bag.sizes, " and ", factor.sizes);
  Prepared<S> r({count, rows.sizes[1]}, rows.dtype);
  for (const char* name : {"v", "b", "i"}) r.place(name, 0);
  r.size = table;
  return r;
}
}  // namespace

template <class S>
Prepared<S> bag_sum(const Geometry<S>& self, const Geometry<S>& index, const Geometry<S>& bag,
                    const Geometry<S>& factor, const S& bags) {
  STRATA_CHECK(self.dim() > 0, "_bag_sum: expected rows (n, columns), got a tensor of no dims");
  return shape::bags<S>("_bag_sum", self, index, bag, factor, bags, self.sizes[0]);
}

template <class S>
Prepared<S> bag_sum_backward(const Geometry<S>& grad, const Geometry<S>& index, const Geometry<S>& bag,
                             const Geometry<S>& factor, const S& rows) {
  return bags<S>("_bag_sum_backward", grad, index, bag, factor, rows, rows);
}

#define STRATA_RULES(S)                                                                                        \
  template Prepared<S> index_add(const Geometry<S>&, int64_t, const Geometry<S>&, const Geometry<S>&);         \
  template Prepared<S> index_copy(const Geometry<S>&, int64_t, const Geometry<S>&, const Geometry<S>&);        \
  template Prepared<S> index_fill(const Geometry<S>&, int64_t, const Geometry<S>&);                            \
  template Prepared<S> scatter(const Geometry<S>&, int64_t, const Geometry<S>&, const Geometry<S>&);           \
  template Prepared<S> scatter_value(const Geometry<S>&, int64_t, const Geometry<S>&);                         \
  template Prepared<S> put(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&);                        \
  template Prepared<S> embedding_backward(const Geometry<S>&, const Geometry<S>&, const S&);                   \
  template Prepared<S> bag_sum(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, \
                               const S&);                                                                      \
  template Prepared<S> bag_sum_backward(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&,            \
                                        const Geometry<S>&, const S&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
