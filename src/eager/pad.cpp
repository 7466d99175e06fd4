// Derivatives of padding: what the modes repeat is added along their index maps, one dim after the other, in ascending
// order.
#include <algorithm>

#include "base/checked.h"
#include "core/parallel.h"
#include "core/shape/pad.h"
#include "eager/cast.h"
#include "eager/copy.h"
#include "eager/view_rules.h"
#include "strata/generated/eager_shape.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

using Geometry = shape::Geometry<int64_t>;

enum class Mode { Reflect, Replicate, Circular };

// The source index of each place of a padded dim.
Tensor map_of(Mode mode, int64_t n, int64_t before, int64_t after) {
  Tensor places = make_tensor(IntArrayRef(std::max<int64_t>(0, n + before + after)), DType::I64, Device{});
  int64_t* map = places.data<int64_t>();
  // What negative padding takes away does not come back around.
  int64_t first = mode == Mode::Circular ? std::max<int64_t>(0, -before) : 0;
  int64_t period = mode == Mode::Circular ? n - first - std::max<int64_t>(0, -after) : n;
  for (int64_t k = 0; k < places.numel(); ++k) {
    int64_t i = k - before - first;
    switch (mode) {
      case Mode::Reflect:
        i = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
        break;
      case Mode::Replicate:
        i = std::clamp<int64_t>(i, 0, n - 1);
        break;
      case Mode::Circular:
        i = (i % period + period) % period;
        break;
    }
    map[k] = first + i;
  }
  return places;
}

// A contiguous tensor as (outer, n, inner) around dim.
struct Around {
  int64_t outer = 1, inner = 1;
  Around(IntArrayRef sizes, int64_t dim) {
    for (int64_t d = 0; d < dim; ++d) outer *= sizes[d];
    for (size_t d = size_t(dim) + 1; d < sizes.size(); ++d) inner *= sizes[d];
  }
};

template <class T, class Add>
void scatter_rows(const Around& a, int64_t n, const Tensor& places, const T* src, T* dst, Add add) {
  const int64_t* map = places.data<int64_t>();
  int64_t count = places.numel();
  parallel_for(0, a.outer, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, count * a.inner)),
               [&](int64_t b, int64_t e) {
                 for (int64_t o = b; o < e; ++o)
                   for (int64_t k = 0; k < count; ++k) {
                     const T* s = src + (o * count + k) * a.inner;
                     T* d = dst + (o * n + map[k]) * a.inner;
                     for (int64_t i = 0; i < a.inner; ++i) add(d[i], s[i]);
                   }
               });
}

// Adds what a padded dim repeats.
Tensor scatter_dim(const Tensor& grad, int64_t dim, int64_t n, const Tensor& places) {
  Tensor from = as_contiguous(grad);
  DimVec sizes(grad.sizes());
  Around a(sizes, dim);
  sizes[dim] = n;
  Tensor out = new_tensor(grad, sizes);
  fill_values(out, Scalar(0));
  if (grad.numel() == 0) return out;
  auto plain = [](auto& x, auto y) { x += y; };
  switch (grad.dtype()) {
    case DType::F32:
      scatter_rows(a, n, places, from.data<float>(), out.data<float>(), plain);
      break;
    case DType::F64:
      scatter_rows(a, n, places, from.data<double>(), out.data<double>(), plain);
      break;
    case DType::C64:
      scatter_rows(a, n, places, from.data<std::complex<float>>(), out.data<std::complex<float>>(), plain);
      break;
    case DType::C128:
      scatter_rows(a, n, places, from.data<std::complex<double>>(), out.data<std::complex<double>>(), plain);
      break;
    default:
      throw_error(ErrorKind::NotImplemented, str_cat("pad: the derivative takes floating dtypes, got ", grad.dtype()));
  }
  return out;
}

shape::Prepared<int64_t> prepared(Mode mode, const Geometry& self, IntArrayRef pad, int64_t count) {
  return mode == Mode::Reflect     ? shape::reflection_pad<int64_t>(self, pad, count)
         : mode == Mode::Replicate ? shape::replication_pad<int64_t>(self, pad, count)
                                   : shape::circular_pad<int64_t>(self, pad);
}

Tensor pad_backward(Mode mode, const Tensor& grad, IntArrayRef sizes, IntArrayRef pad, int64_t count) {
  const Geometry self{sizes, {}, grad.dtype(), grad.device(), true};
  const DimVec padded = prepared(mode, self, pad, count).outputs[0].sizes;
  STRATA_CHECK(grad.sizes() == IntArrayRef(padded), "pad: the derivative: expected a gradient of shape ", padded,
               ", got ", grad.sizes());
  STRATA_CHECK_NOT_IMPLEMENTED(grad.numel() == 0 || is_differentiable(grad.dtype()),
                               "pad: the derivative takes floating dtypes, got ", grad.dtype());
  const MemoryFormat format = mode == Mode::Circular ? MemoryFormat::Contiguous : suggested_format(grad);
  if (grad.is_meta() || grad.numel() == 0) {
    Tensor zeros = new_tensor(grad, sizes, grad.dtype(), format);
    fill_values(zeros, Scalar(0));
    return zeros;
  }
  // Narrow floats are added up in float32 and rounded once.
  bool narrow = grad.dtype() == DType::BF16 || grad.dtype() == DType::F16;
  Tensor r = narrow ? as_dtype(grad, DType::F32) : grad;
  int64_t n = int64_t(sizes.size());
  for (int64_t i = int64_t(pad.size()) / 2; i-- > 0;) {
    int64_t d = n - 1 - i;
    if (pad[2 * i] || pad[2 * i + 1])
      r = scatter_dim(r, d, sizes[d], map_of(mode, sizes[d], pad[2 * i], pad[2 * i + 1]));
  }
  return in_format(r.is_same(grad) ? contiguous_copy(grad) : as_dtype(r, grad.dtype()), format);
}

}  // namespace

#define STRATA_PAD(name, mode, count)                                               \
  Tensor name##_backward(const Tensor& grad, const Tensor& self, IntArrayRef pad) { \
    return pad_backward(mode, grad, self.sizes(), pad, count);                      \
  }
STRATA_PAD(reflection_pad1d, Mode::Reflect, 1)
STRATA_PAD(reflection_pad2d, Mode::Reflect, 2)
STRATA_PAD(reflection_pad3d, Mode::Reflect, 3)
STRATA_PAD(replication_pad1d, Mode::Replicate, 1)
STRATA_PAD(replication_pad2d, Mode::Replicate, 2)
STRATA_PAD(replication_pad3d, Mode::Replicate, 3)
#undef STRATA_PAD

Tensor pad_circular_backward(const Tensor& grad, IntArrayRef sizes, IntArrayRef pad) {
  return pad_backward(Mode::Circular, grad, sizes, pad, int64_t(pad.size()) / 2);
}

Tensor pad_by_mode(const Tensor& self, IntArrayRef pad, std::string_view mode, std::optional<double> value) {
  STRATA_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  STRATA_CHECK(int64_t(pad.size()) <= 2 * self.dim(),
               "Padding length should be less than or equal to two times the input "
               "dimension but got padding length ",
               pad.size(), " and input of dimension ", self.dim());
  if (mode == "constant") return ops::constant_pad_nd(self, pad, value ? Scalar(*value) : Scalar(0));
  STRATA_CHECK(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  size_t n = pad.size();
  int64_t count = int64_t(n) / 2;
  bool fits = (n == 2 || n == 4 || n == 6) && (self.dim() == count + 1 || self.dim() == count + 2);
  if (mode == "reflect" && fits)
    return n == 2   ? ops::reflection_pad1d(self, pad)
           : n == 4 ? ops::reflection_pad2d(self, pad)
                    : ops::reflection_pad3d(self, pad);
  if (mode == "replicate" && fits)
    return n == 2   ? ops::replication_pad1d(self, pad)
           : n == 4 ? ops::replication_pad2d(self, pad)
                    : ops::replication_pad3d(self, pad);
  if (mode == "circular" && fits) return ops::_pad_circular(self, pad);
  STRATA_CHECK_NOT_IMPLEMENTED(
      mode != "reflect" && mode != "replicate" && mode != "circular", "Padding size ", n, " is not supported for ",
      self.dim(),
      "D input tensor.\nSupported combinations for "
      "non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D "
      "input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 (pads "
      "last 3 dimensions)");
  throw_error(ErrorKind::NotImplemented,
              str_cat("Unrecognised padding mode ", mode, "; expected constant, reflect, replicate or circular"));
}

}  // namespace strata::eager
