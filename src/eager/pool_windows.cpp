#include <algorithm>

#include "base/inline_vec.h"
#include "core/shape/pool.h"
#include "eager/copy.h"
#include "eager/pool.h"

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

int64_t at(IntArrayRef list, size_t d) { return list.size() == 1 ? list[0] : list[d]; }

void check_list(const char* op, const char* what, int64_t rank, IntArrayRef list, bool may_be_empty) {
  STRATA_CHECK(list.size() == 1 || int64_t(list.size()) == rank || (may_be_empty && list.empty()), op, ": ", what,
               " must ", may_be_empty ? "either be omitted, " : "either be ", "a single int, or a tuple of ",
               rank == 2 ? "two" : "three", " ints; got ", list);
}

void check_input(const char* op, int64_t rank, const Tensor& self) {
  int64_t n = self.dim();
  STRATA_CHECK(n == rank + 1 || n == rank + 2, "non-empty ", rank + 1, "D or ", rank + 2,
               "D (batch mode) tensor expected for input of ", op, ", got ", self.sizes());
  bool fits = true;
  for (int64_t d = n == rank + 2 ? 1 : 0; d < n; ++d) fits &= self.sizes()[d] != 0;
  STRATA_CHECK(fits, "Expected ", rank + 1, "D or ", rank + 2,
               "D (batch mode) tensor with optional 0 dim batch size for input, but got:", self.sizes(), " (", op, ")");
}

using Axes = InlineVec<WindowAxis*, 3>;

Axes axes_of(Volumes& v, int64_t rank) {
  Axes axes;
  if (rank == 3) axes.push_back(&v.depth);
  axes.push_back(&v.rows);
  axes.push_back(&v.cols);
  return axes;
}

Volumes volumes_of(int64_t rank, const Tensor& self) {
  Volumes v;
  int64_t first = self.dim() - rank;
  Axes axes = axes_of(v, rank);
  for (int64_t d = 0; d < rank; ++d) axes[d]->size = self.sizes()[first + d];
  for (int64_t d = 0; d < first; ++d) v.count *= self.sizes()[d];
  v.output = DimVec(self.sizes());
  if (rank == 2) v.format = batch_format(rank, self);
  return v;
}

}  // namespace

MemoryFormat batch_format(int64_t rank, const Tensor& self) {
  return self.dim() == rank + 2 ? suggested_format(self) : MemoryFormat::Contiguous;
}

Volumes sliding_volumes(const char* op, int64_t rank, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  check_list(op, "kernel_size", rank, kernel, false);
  check_list(op, "stride", rank, stride, true);
  check_list(op, "padding", rank, padding, false);
  check_list(op, "dilation", rank, dilation, false);
  check_input(op, rank, self);
  Volumes v = volumes_of(rank, self);
  Axes axes = axes_of(v, rank);
  int64_t first = self.dim() - rank;
  for (int64_t d = 0; d < rank; ++d) {
    WindowAxis& a = *axes[d];
    a.kernel = at(kernel, d);
    a.stride = stride.empty() ? a.kernel : at(stride, d);
    a.padding = at(padding, d);
    a.dilation = at(dilation, d);
    STRATA_CHECK(a.kernel > 0, op, ": kernel size should be greater than zero, but got ", kernel);
    STRATA_CHECK(a.stride != 0, "stride should not be zero (", op, ")");
    STRATA_CHECK(a.stride > 0, op, ": stride should be greater than zero, but got ", stride);
    STRATA_CHECK(a.dilation > 0, op, ": dilation should be greater than zero, but got ", dilation);
    STRATA_CHECK(a.padding >= 0, "pad must be non-negative, but got pad: ", a.padding, " (", op, ")");
    STRATA_CHECK(a.padding <= shape::plus<int64_t>(shape::kernel_reach(a.kernel, a.dilation), 1) / 2,
                 "pad should be at most half of effective kernel size, but got pad=", a.padding,
                 ", kernel_size=", a.kernel, " and dilation=", a.dilation);
    int64_t span = shape::plus(a.size, 2 * a.padding) - shape::kernel_reach(a.kernel, a.dilation) - 1;
    a.count = span < 0 && !(ceil_mode && span > -a.stride)
                  ? 0
                  : shape::pool_size(a.size, a.kernel, a.stride, a.padding, a.dilation, ceil_mode);
    v.output[first + d] = a.count;
  }
  for (int64_t d = 0; d < rank; ++d)
    STRATA_CHECK(axes[d]->count >= 1, op, ": Given input size: ", self.sizes(),
                 ". Calculated output size: ", IntArrayRef(v.output), ". Output size is too small");
  return v;
}

Volumes even_volumes(const char* op, int64_t rank, const Tensor& self, IntArrayRef output_size) {
  STRATA_CHECK(int64_t(output_size.size()) == rank, op, ": output_size must be ", rank, ", got ", output_size);
  check_input(op, rank, self);
  Volumes v = volumes_of(rank, self);
  Axes axes = axes_of(v, rank);
  for (int64_t d = 0; d < rank; ++d) {
    axes[d]->even = true;
    axes[d]->count = output_size[d];
    STRATA_CHECK(output_size[d] >= 0, op, ": elements of output_size must be greater than or equal to 0 but received ",
                 output_size);
    v.output[self.dim() - rank + d] = output_size[d];
  }
  return v;
}

}  // namespace strata::eager
