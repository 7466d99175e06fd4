#include <algorithm>

#include "base/inline_vec.h"
#include "core/shape/pool.h"
#include "eager/copy.h"
#include "eager/pool.h"
#include "eager/space.h"

namespace strata::eager {

int64_t WindowAxis::begin(int64_t i) const {
  if (even) return shape::even_begin(i, size, count);
  int64_t at = i * stride - padding;
  return at >= 0 ? at : at + (-at + dilation - 1) / dilation * dilation;
}

int64_t WindowAxis::end(int64_t i) const {
  if (even) return shape::even_end(i, size, count);
  return std::min(i * stride - padding + dilation * (kernel - 1) + 1, size);
}

int64_t WindowAxis::padded(int64_t i) const {
  int64_t from = i * stride - padding;
  return std::min(from + kernel, size + padding) - from;
}

namespace {

Volumes volumes_of(int64_t rank, const Tensor& self, const shape::PoolAxes<int64_t>& axes, bool even) {
  Volumes v;
  const int64_t first = self.dim() - rank;
  v.output = DimVec(self.sizes());
  for (int64_t d = 0; d < rank; ++d) {
    const shape::PoolAxis<int64_t>& a = axes[size_t(d)];
    WindowAxis& to = d == rank - 1 ? v.cols : d == rank - 2 ? v.rows : v.depth;
    to = {a.size, a.count, a.kernel, a.stride, a.padding, a.dilation, even};
    v.output[size_t(first + d)] = a.count;
  }
  for (int64_t d = 0; d < first; ++d) v.count *= self.sizes()[size_t(d)];
  if (rank == 2) v.format = batch_format(rank, self);
  return v;
}

}  // namespace

MemoryFormat batch_format(int64_t rank, const Tensor& self) {
  return self.dim() == rank + 2 ? suggested_format(self) : MemoryFormat::Contiguous;
}

Volumes sliding_volumes(const char* op, int64_t rank, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return volumes_of(
      rank, self, shape::sliding_axes<int64_t>(op, rank, geometry(self), kernel, stride, padding, dilation, ceil_mode),
      false);
}

Volumes even_volumes(const char* op, int64_t rank, const Tensor& self, IntArrayRef output_size) {
  return volumes_of(rank, self, shape::even_axes<int64_t>(op, rank, geometry(self), output_size), true);
}

}  // namespace strata::eager
