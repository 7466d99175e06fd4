// Views that choose among a dim's indices or reorder dims.
#include <algorithm>

#include "base/checked.h"
#include "core/promote.h"
#include "core/shape/view.h"
#include "run/copy.h"
#include "run/view_rules.h"
#include "strata/generated/by_hand/view.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor alias_view(const Tensor& self) { return self.alias(); }

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  STRATA_CHECK_INDEX(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  int64_t size = self.sizes()[dim];
  auto part = shape::slice<int64_t>(size, start.value_or(0), end.value_or(INT64_MAX), step);
  DimVec sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset() + part.start * strides[dim];
  sizes[dim] = part.length;
  // A step past the end of the dim only ever reads its first element.
  if (part.length > 1)
    strides[dim] *= step;
  else if (__builtin_mul_overflow(strides[dim], step, &strides[dim]))
    strides[dim] = self.strides()[dim];
  return self.alias(sizes, strides, offset);
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  STRATA_CHECK_INDEX(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  index = shape::select_index(self.sizes(), dim, index);
  DimVec sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset() + index * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return self.alias(sizes, strides, offset);
}

Tensor narrow_tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  STRATA_CHECK(start.dim() == 0 && is_integral(start.dtype(), false), "start must be an 0-dim integral Tensor.");
  return ops::narrow(self, dim, ops::item(start).to_int(), length);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim());
  dim1 = wrap_dim(dim1, self.dim());
  if (self.dim() == 0) return self.alias();
  DimVec sizes(self.sizes()), strides(self.strides());
  std::swap(sizes[dim0], sizes[dim1]);
  std::swap(strides[dim0], strides[dim1]);
  return self.alias(sizes, strides, self.storage_offset());
}

Tensor t_view(const Tensor& self) {
  STRATA_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return transpose(self, 0, self.dim() < 2 ? 0 : 1);
}

// See Note [Conjugates are copies].
Tensor conj(const Tensor& self) {
  if (!self.is_complex()) return self;
  Tensor result = ops::conj_physical(self);
  if (result.storage()->use_count() == 1 && !result.keys().has(Key::Python)) result.storage()->make_read_only();
  return result;
}

Tensor adjoint(const Tensor& self) {
  STRATA_CHECK(self.dim() != 1,
               "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.");
  if (self.dim() == 0) return self.is_complex() ? ops::conj(self) : self;
  Tensor r = ops::transpose(self, -2, -1);
  return self.is_complex() ? ops::conj(r) : r;
}

Tensor permute(const Tensor& self, IntArrayRef dims) {
  STRATA_CHECK(int64_t(dims.size()) == self.dim(),
               "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
               "ordering of dimensions i.e. input.dim() = ",
               self.dim(), " is not equal to len(dims) = ", dims.size());
  DimVec sizes(dims.size()), strides(dims.size());
  uint64_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], self.dim());
    STRATA_CHECK(!(seen >> d & 1), "permute(): duplicate dims are not allowed.");
    seen |= uint64_t(1) << d;
    sizes[i] = self.sizes()[d];
    strides[i] = self.strides()[d];
  }
  return self.alias(sizes, strides, self.storage_offset());
}

Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  STRATA_CHECK(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (", source,
               " dims) should contain the same number of dims as destination (", destination, " dims)");
  int64_t n = self.dim();
  DimVec order(n, -1);
  uint64_t moved = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    int64_t from = wrap_dim(source[i], n), to = wrap_dim(destination[i], n);
    STRATA_CHECK(!(moved >> from & 1), "movedim: repeated dim in `source` (", source, ")");
    moved |= uint64_t(1) << from;
    if (n == 0) return ops::alias(self);
    STRATA_CHECK(order[to] < 0, "movedim: repeated dim in `destination` (", destination, ")");
    order[to] = from;
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (moved >> next & 1) ++next;
    d = next++;
  }
  return ops::permute(self, order);
}

namespace {
template <class Drop>
Tensor squeezed(const Tensor& self, Drop drop) {
  DimVec sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.sizes()[d] == 1 && drop(d)) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return self.alias(sizes, strides, self.storage_offset());
}
}  // namespace

Tensor squeeze_all(const Tensor& self) {
  return squeezed(self, [](int64_t) { return true; });
}

Tensor squeeze_dims(const Tensor& self, IntArrayRef dims) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, self.dim());
    STRATA_CHECK(!(mask & bit), "dim ", wrap_dim(d, self.dim()), " appears multiple times in the list of dims");
    mask |= bit;
  }
  return squeezed(self, [mask](int64_t d) { return mask >> d & 1; });
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  dimension = wrap_dim(dimension, self.dim());
  DimVec sizes(self.sizes()), strides(self.strides());
  int64_t extent = self.dim() ? sizes[dimension] : 1, stride = self.dim() ? strides[dimension] : 1;
  int64_t count = shape::windows<int64_t>(extent, dimension, size, step);
  if (self.dim()) {
    sizes[dimension] = count;
    if (__builtin_mul_overflow(stride, step, &strides[dimension])) strides[dimension] = stride;  // one window
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return self.alias(sizes, strides, self.storage_offset());
}

}  // namespace strata::eager
