// Pooling that is made of other pooling: one spatial dim as two with a height of 1, and means of whole planes.
#include <algorithm>
#include <cmath>

#include "core/promote.h"
#include "dispatch/tls.h"
#include "strata/generated/by_hand/pool.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/pool.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

const int64_t kOne = 1;

struct Flat {
  Tensor image;
  DimVec kernel, stride, padding, dilation;
};

void check_one(const char* op, const Tensor& self) {
  STRATA_CHECK(self.dim() == 2 || self.dim() == 3, op,
               ": Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
               "but got: ",
               self.sizes());
}

Flat flat(const char* op, const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
          IntArrayRef dilation) {
  check_one(op, self);
  STRATA_CHECK(kernel.size() == 1 && stride.size() <= 1 && padding.size() == 1 && dilation.size() == 1, op,
               ": kernel_size, stride, padding and dilation must be single ints");
  return {ops::unsqueeze(self, -2),
          {1, kernel[0]},
          {1, stride.empty() ? kernel[0] : stride[0]},
          {0, padding[0]},
          {1, dilation[0]}};
}

// Maxima of as many views as a window has elements, each the windows' j-th; undefined where windows are long, the last
// is cut, or there are none.
Tensor by_maxima(const Tensor& self, const Flat& f, bool ceil_mode) {
  const int64_t size = f.kernel[1], step = f.stride[1], apart = f.dilation[1], pad = f.padding[1];
  if (size < 2 || size > 8 || step < 1 || apart < 1 || pad < 0 || pad > size / 2 || self.numel() == 0) return {};
  const int64_t n = self.size(-1) + 2 * pad, rest = n - 1 - std::min(apart, n) * (size - 1);
  if (rest < 0 || (ceil_mode && rest % step != 0)) return {};
  const int64_t ends[] = {pad, pad};
  const Tensor padded = pad ? ops::constant_pad_nd(self, IntArrayRef(ends, 2), Scalar(-INFINITY)) : self;
  Tensor best = ops::slice(padded, -1, 0, rest + 1, step);
  for (int64_t j = 1; j < size; ++j)
    best = ops::maximum(best, ops::slice(padded, -1, j * apart, j * apart + rest + 1, step));
  return best;
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  Flat f = flat("max_pool1d", self, kernel, stride, padding, dilation);
  auto [values, indices] = ops::max_pool2d_with_indices(f.image, f.kernel, f.stride, f.padding, f.dilation, ceil_mode);
  return {ops::squeeze(values, -2), ops::squeeze(indices, -2)};
}

Tensor max_pool1d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                  bool ceil_mode) {
  // As in PyTorch, integers have the maxima only together with their indices.
  STRATA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.numel() == 0,
                               "\"max_pool1d_impl\" not implemented for '", scalar_type_name(self.dtype()),
                               "'; convert the input with .to() first");
  if (!grad_enabled() || !self.requires_grad())
    if (Tensor made = by_maxima(self, flat("max_pool1d", self, kernel, stride, padding, dilation), ceil_mode);
        made.defined())
      return made;
  return std::get<0>(ops::max_pool1d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
}

Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad) {
  Flat f = flat("avg_pool1d", self, kernel, stride, padding, IntArrayRef(kOne));
  return ops::squeeze(ops::avg_pool2d(f.image, f.kernel, f.stride, f.padding, ceil_mode, count_include_pad), -2);
}

Tensor adaptive_avg_pool1d(const Tensor& self, IntArrayRef output_size) {
  check_one("adaptive_avg_pool1d", self);
  STRATA_CHECK(output_size.size() == 1, "adaptive_avg_pool1d: output_size must be one int, got ", output_size);
  return ops::squeeze(ops::adaptive_avg_pool2d(ops::unsqueeze(self, -2), {1, output_size[0]}), -2);
}

std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntArrayRef output_size) {
  check_one("adaptive_max_pool1d", self);
  STRATA_CHECK(output_size.size() == 1, "adaptive_max_pool1d: output_size must be one int, got ", output_size);
  auto [values, indices] = ops::adaptive_max_pool2d(ops::unsqueeze(self, -2), {1, output_size[0]});
  return {ops::squeeze(values, -2), ops::squeeze(indices, -2)};
}

namespace {
// Whether the result is one mean per channel.
bool is_mean(int64_t rank, const Tensor& self, IntArrayRef output_size) {
  bool ones = std::all_of(output_size.begin(), output_size.end(), [](int64_t n) { return n == 1; });
  return ones && (self.is_floating_point() || self.is_complex()) && (self.dim() == rank + 1 || self.dim() == rank + 2);
}
}  // namespace

Tensor adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  STRATA_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2, got ", output_size);
  const int64_t dims[] = {-1, -2};
  if (is_mean(2, self, output_size)) return ops::mean(self, OptIntArrayRef(IntArrayRef(dims, 2)), true);
  return ops::_adaptive_avg_pool2d(self, output_size);
}

Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  STRATA_CHECK(output_size.size() == 3, "adaptive_avg_pool3d: output_size must be 3, got ", output_size);
  const int64_t dims[] = {-1, -2, -3};
  if (is_mean(3, self, output_size)) return ops::mean(self, OptIntArrayRef(IntArrayRef(dims, 3)), true);
  return ops::_adaptive_avg_pool3d(self, output_size);
}

}  // namespace strata::eager
