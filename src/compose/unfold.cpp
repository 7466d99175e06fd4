// Windows of images as columns.
#include "core/shape/arithmetic.h"
#include "core/shape/pool.h"
#include "run/visit.h"
#include "strata/generated/by_hand/arrange.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

struct Axis {
  int64_t kernel, dilation, padding, stride, size, count;
  int64_t padded() const { return shape::plus(size, shape::times<int64_t>(2, padding)); }
  // Where element k of window i lies in the padded dim, k by k.
  Tensor places(const Tensor& like) const {
    const int64_t n = shape::times(kernel, count);
    const KindGuard kind(like);
    auto steps = [&](int64_t number, int64_t step) {
      return ops::mul(ops::arange(Scalar(number), DType::I64, like.device()), Scalar(step));
    };
    return ops::reshape(ops::add(ops::unsqueeze(steps(kernel, dilation), 1), steps(count, stride)), {n});
  }
};

Axis axis_of(const char* op, size_t d, int64_t size, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
             IntArrayRef stride) {
  auto at = [&](const char* what, IntArrayRef list, int64_t low) {
    STRATA_CHECK(list.size() == 1 || list.size() == 2, op, ": argument ", what, ": expected one or two ints, got ",
                 list);
    int64_t value = list.size() == 1 ? list[0] : list[d];
    STRATA_CHECK(value >= low, op, ": ", what, " should be ", low ? "greater than zero" : "non-negative", ", but got ",
                 list);
    return value;
  };
  Axis a{at("kernel_size", kernel, 1),
         at("dilation", dilation, 1),
         at("padding", padding, 0),
         at("stride", stride, 1),
         size,
         0};
  STRATA_CHECK(size >= 0, op, ": expected an image of size 0 or more, got ", size);
  int64_t span = a.padded() - shape::kernel_reach(a.kernel, a.dilation) - 1;
  STRATA_CHECK(span >= 0, op, ": expected an image of at least the kernel's reach, got size ", size, ", kernel_size ",
               kernel, ", dilation ", dilation, " and padding ", padding,
               ": calculated shape of the array of sliding blocks must be at least one");
  a.count = span / a.stride + 1;
  return a;
}

void check_numbers(const char* op, const Tensor& self) {
  STRATA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.is_complex() || self.dtype() == DType::Bool, "\"", op,
                               "\" not implemented for '", scalar_type_name(self.dtype()),
                               "'; convert the input with .to() first");
}

}  // namespace

Tensor im2col(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  int64_t n = self.dim();
  bool sized = (n == 3 || n == 4) && self.sizes()[n - 1] != 0 && self.sizes()[n - 2] != 0 && self.sizes()[n - 3] != 0;
  STRATA_CHECK(sized,
               "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
               "input, but got: ",
               self.sizes());
  Axis y = axis_of("im2col", 0, self.sizes()[n - 2], kernel, dilation, padding, stride);
  Axis x = axis_of("im2col", 1, self.sizes()[n - 1], kernel, dilation, padding, stride);
  check_numbers("im2col", self);
  if (n == 3) return ops::squeeze(im2col(ops::unsqueeze(self, 0), kernel, dilation, padding, stride), 0);
  int64_t batch = self.sizes()[0], channels = self.sizes()[1];
  const int64_t around[] = {x.padding, x.padding, y.padding, y.padding};
  Tensor image = x.padding || y.padding ? ops::constant_pad_nd(self, IntArrayRef(around, 4), Scalar(0)) : self;
  Tensor lines = ops::index_select(ops::index_select(image, 2, y.places(self)), 3, x.places(self));
  Tensor split = ops::reshape(lines, {batch, channels, y.kernel, y.count, x.kernel, x.count});
  return ops::reshape(ops::permute(split, {0, 1, 2, 4, 3, 5}),
                      {batch, channels * y.kernel * x.kernel, y.count * x.count});
}

Tensor col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  int64_t n = self.dim();
  STRATA_CHECK(output_size.size() == 2, "It is expected output_size equals to 2, but got size ", output_size.size());
  STRATA_CHECK((n == 2 || n == 3) && self.sizes()[n - 1] != 0 && self.sizes()[n - 2] != 0,
               "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
               "input, but got: ",
               self.sizes());
  Axis y = axis_of("col2im", 0, output_size[0], kernel, dilation, padding, stride);
  Axis x = axis_of("col2im", 1, output_size[1], kernel, dilation, padding, stride);
  int64_t area = checked_mul(y.kernel, x.kernel, "col2im"), rows = self.sizes()[n - 2], windows = self.sizes()[n - 1];
  STRATA_CHECK(rows % area == 0,
               "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
               "input.size(1)=",
               rows, " and kernel_size=", kernel);
  const int64_t wanted = shape::times(y.count, x.count);
  STRATA_CHECK(windows == wanted, "Given output_size=", output_size, ", kernel_size=", kernel, ", dilation=", dilation,
               ", padding=", padding, ", stride=", stride,
               ", expected size of input's dimension 2 to match the calculated number of sliding blocks ", y.count,
               " * ", x.count, " = ", wanted, ", but got input.size(2)=", windows);
  check_numbers("col2im", self);
  if (n == 2) return ops::squeeze(col2im(ops::unsqueeze(self, 0), output_size, kernel, dilation, padding, stride), 0);
  int64_t batch = self.sizes()[0], channels = rows / area;
  // Sums of float16 and bfloat16 are rounded once, at the end.
  Tensor wide = is_half(self.dtype()) ? ops::to(self, DType::F32) : self;
  Tensor split = ops::reshape(wide, {batch, channels, y.kernel, x.kernel, y.count, x.count});
  Tensor lines =
      ops::reshape(ops::permute(split, {0, 1, 2, 4, 3, 5}), {batch, channels, y.kernel * y.count, x.kernel * x.count});
  auto zeros = [&](int64_t h) { return ops::new_zeros(wide, {batch, channels, h, x.padded()}); };
  Tensor columns = ops::index_add(zeros(y.kernel * y.count), 3, x.places(self), lines);
  Tensor image = ops::index_add(zeros(y.padded()), 2, y.places(self), columns);
  Tensor inner = ops::narrow(ops::narrow(image, 2, y.padding, y.size), 3, x.padding, x.size);
  return is_half(self.dtype()) ? ops::to(inner, self.dtype()) : ops::clone(inner, MemoryFormat::Contiguous);
}

}  // namespace strata::eager
