// Masks: masked_fill, masked_select, masked_scatter, nonzero.
#include "base/checked.h"
#include "core/parallel.h"
#include "run/bind.h"
#include "run/index_args.h"
#include "run/loop/index_walk.h"
#include "run/pointwise.h"
#include "run/view_rules.h"
#include "run/visit.h"
#include "strata/generated/by_hand/index.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

void check_mask(const char* name, const Tensor& mask) {
  STRATA_CHECK(mask.defined(), name, ": argument mask: expected a bool tensor, got None");
  STRATA_CHECK(mask.dtype() == DType::Bool, name, " only supports boolean masks, but got mask with dtype ",
               mask.dtype());
}

Tensor broadcast_to(const Tensor& t, const DimVec& shape) {
  auto [sizes, strides] = expanded(t.sizes(), t.strides(), shape);
  return t.alias(sizes, strides, t.storage_offset());
}

}  // namespace

Scalar checked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask("masked_fill_", mask);
  check_fits(value, self.dtype());
  return value;
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  STRATA_CHECK(mask.dtype() == DType::Bool, "masked_select: expected BoolTensor for mask, got ", mask.dtype());
  DimVec shape = broadcast_shapes(self.sizes(), mask.sizes());
  Tensor flat = flat_nonzero(broadcast_to(mask, shape));
  return ops::take(broadcast_to(self, shape), flat);
}

void masked_scatter_inplace(const Tensor& self, const Tensor& mask, const Tensor& source) {
  STRATA_CHECK(self.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got ",
               scalar_type_name(self.dtype()), " and ", scalar_type_name(source.dtype()));
  check_mask("masked_scatter_", mask);
  DimVec shape = broadcast_shapes(self.sizes(), mask.sizes());
  STRATA_CHECK(self.sizes() == IntArrayRef(shape), "output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", shape);
  check_apart("masked_scatter_", self, {&mask, &source});
  Tensor flat = flat_nonzero(broadcast_to(mask, shape));
  STRATA_CHECK(flat.numel() <= source.numel(), "Number of elements of source < number of ones in mask");
  if (flat.numel() == 0) return;
  Tensor values = as_contiguous(source);
  ops::put_(self, flat, values.alias(flat.sizes(), IntArrayRef(int64_t(1)), values.storage_offset()), false);
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  Tensor out = contiguous_copy(broadcast_to(self, broadcast_shapes(self.sizes(), mask.sizes())));
  masked_scatter_inplace(out, mask, source);
  return out;
}

Tensor nonzero(const Tensor& self) { return coordinates(flat_nonzero(self), self.sizes()); }

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  STRATA_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer, got ", size);
  Tensor out = new_tensor(self, {size, self.dim()}, DType::I64);
  fill_values(out, Scalar(fill_value));
  Tensor found = nonzero(self);
  const int64_t rows = std::min(size, found.sizes()[0]);
  auto top = [&](const Tensor& t) { return t.alias({rows, self.dim()}, t.strides(), t.storage_offset()); };
  copy_values(top(out), top(found));
  return out;
}

std::vector<Tensor> nonzero_columns(const Tensor& self) {
  DimVec sizes(self.sizes());
  if (sizes.empty()) sizes.push_back(1);
  return coordinate_columns(flat_nonzero(self), sizes);
}

Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  return count_nonzero_dims(self, dim ? IntArrayRef(*dim) : IntArrayRef());
}

Tensor count_nonzero_dims(const Tensor& self, IntArrayRef dim) {
  const Tensor counted = self.dtype() == DType::Bool ? self : ops::ne(self, Scalar(0));
  return ops::sum(counted, OptIntArrayRef(dim), false, DType::I64);
}

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
               "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  STRATA_CHECK(index.dim() <= 1, "index_reduce(): Index is supposed to be a vector, got ", index.dim(), " dims");
  STRATA_CHECK(index.dtype() == DType::I64 || index.dtype() == DType::I32,
               "index_reduce(): Expected dtype int32/int64 for index, got ", index.dtype());
  STRATA_CHECK(self.dtype() == source.dtype(), "index_reduce(): self and source expected to have the same dtype, got ",
               self.dtype(), " and ", source.dtype());
  bool fits = source.dim() == self.dim() && (source.dim() ? source.sizes()[dim] : 1) == index.numel();
  for (int64_t d = 0; fits && d < self.dim(); ++d) fits = d == dim || source.sizes()[d] == self.sizes()[d];
  STRATA_CHECK(fits, "index_reduce(): expected source of the shape of self but for dim ", dim,
               ", where it has the size of index; got self ", self.sizes(), ", source ", source.sizes(),
               " and an index of ", index.numel());
  STRATA_CHECK_NOT_IMPLEMENTED(self.dtype() != DType::Bool,
                               "\"index_reduce\" not implemented for 'Bool'; convert self and source first");
  DimVec along(self.dim(), 1);
  if (self.dim()) along[dim] = index.numel();
  Tensor at = ops::expand(ops::reshape(index, along), source.sizes());
  return ops::scatter_reduce(self, dim, at, source, reduce, include_self);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  STRATA_CHECK(indices.dtype() == DType::I64, "take_along_dim(): dtype of indices should be Long but got ",
               scalar_type_name(indices.dtype()));
  if (!dim) return ops::gather(ops::reshape(self, {-1}), 0, ops::reshape(indices, {-1}));
  STRATA_CHECK(self.dim() == indices.dim(),
               "take_along_dim(): input and indices should have the same number of dimensions, but got ", self.dim(),
               " dimensions for input, and ", indices.dim(), " dimensions for indices");
  int64_t d = *dim < 0 ? *dim + self.dim() : *dim;
  STRATA_CHECK_INDEX(d >= 0 && d < std::max<int64_t>(self.dim(), 1),
                     "Dimension out of range (expected to be in range of [", -std::max<int64_t>(self.dim(), 1), ", ",
                     std::max<int64_t>(self.dim(), 1) - 1, "], but got ", *dim, ")");
  DimVec a(self.sizes()), b(indices.sizes());
  if (!a.empty()) a[d] = b[d] = 1;
  DimVec shape = broadcast_shapes(a, b), to(shape), at(shape);
  if (!a.empty()) {
    to[d] = self.sizes()[d];
    at[d] = indices.sizes()[d];
  }
  // As in PyTorch any integer names a place, modulo the size.
  int64_t size = self.dim() ? self.sizes()[d] : 1;
  Tensor index = size > 0 ? ops::remainder(indices, Scalar(long(size))) : indices;
  return ops::gather(ops::expand(self, to), d, ops::expand(index, at));
}

}  // namespace strata::eager
