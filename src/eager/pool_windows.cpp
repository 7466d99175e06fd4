#include <algorithm>

#include "core/shape/pool.h"
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

void check_list(const char* op, const char* what, IntArrayRef list, bool may_be_empty) {
  STRATA_CHECK(list.size() == 1 || list.size() == 2 || (may_be_empty && list.empty()), op, ": ", what, " must ",
               may_be_empty ? "either be omitted, a single int, or a tuple of two ints"
                            : "either be a single int, or a tuple of two ints",
               "; got ", list);
}

void check_input(const char* op, const Tensor& self) {
  STRATA_CHECK(self.dim() == 3 || self.dim() == 4, "non-empty 3D or 4D (batch mode) tensor expected for input of ", op,
               ", got ", self.sizes());
  bool fits = self.dim() == 3 || self.dim() == 4;
  for (int64_t d = self.dim() == 4 ? 1 : 0; fits && d < self.dim(); ++d) fits = self.sizes()[d] != 0;
  STRATA_CHECK(fits,
               "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:", self.sizes(),
               " (", op, ")");
}

Planes planes_of(const Tensor& self) {
  Planes p;
  int64_t n = self.dim();
  p.rows.size = self.sizes()[n - 2];
  p.cols.size = self.sizes()[n - 1];
  p.count = 1;
  for (int64_t d = 0; d < n - 2; ++d) p.count *= self.sizes()[d];
  p.output = DimVec(self.sizes());
  return p;
}

}  // namespace

Planes sliding_planes(const char* op, const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                      IntArrayRef dilation, bool ceil_mode) {
  check_list(op, "kernel_size", kernel, false);
  check_list(op, "stride", stride, true);
  check_list(op, "padding", padding, false);
  check_list(op, "dilation", dilation, false);
  check_input(op, self);
  Planes p = planes_of(self);
  int64_t n = self.dim();
  WindowAxis* axes[] = {&p.rows, &p.cols};
  for (size_t d = 0; d < 2; ++d) {
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
    STRATA_CHECK(a.padding <= ((a.kernel - 1) * a.dilation + 1) / 2,
                 "pad should be at most half of effective kernel size, but got pad=", a.padding,
                 ", kernel_size=", a.kernel, " and dilation=", a.dilation);
    int64_t span = a.size + 2 * a.padding - a.dilation * (a.kernel - 1) - 1;
    a.count = span < 0 && !(ceil_mode && span + a.stride > 0)
                  ? 0
                  : shape::pool_size(a.size, a.kernel, a.stride, a.padding, a.dilation, ceil_mode);
    p.output[n - 2 + d] = a.count;
  }
  STRATA_CHECK(p.rows.count >= 1 && p.cols.count >= 1, "Given input size: (", self.sizes()[n - 3], "x", p.rows.size,
               "x", p.cols.size, "). Calculated output size: (", self.sizes()[n - 3], "x", p.rows.count, "x",
               p.cols.count, "). Output size is too small");
  return p;
}

Planes even_planes(const char* op, const Tensor& self, IntArrayRef output_size) {
  STRATA_CHECK(output_size.size() == 2, op, ": output_size must be 2, got ", output_size);
  check_input(op, self);
  Planes p = planes_of(self);
  p.rows.even = p.cols.even = true;
  p.rows.count = output_size[0];
  p.cols.count = output_size[1];
  STRATA_CHECK(p.rows.count >= 0 && p.cols.count >= 0, op,
               ": elements of output_size must be greater than or equal to 0 but received ", output_size);
  p.output[self.dim() - 2] = output_size[0];
  p.output[self.dim() - 1] = output_size[1];
  return p;
}

}  // namespace strata::eager
