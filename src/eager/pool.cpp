// Max and average pooling over planes, one plane after the other; planes are divided among threads.
#include "eager/pool.h"

#include <algorithm>
#include <limits>

#include "core/parallel.h"
#include "eager/visit.h"
#include "strata/generated/eager_pool.h"
#include "strata/generated/ops.h"

namespace strata::eager {

namespace {

struct Window {
  int64_t row0, row1, col0, col1;  // half open
};

// f(plane, index of the window in its plane, window) for all windows of planes [begin, end).
template <class F>
void over_windows(const Planes& p, int64_t begin, int64_t end, F&& f) {
  std::vector<int64_t> col0(p.cols.count), col1(p.cols.count);
  for (int64_t j = 0; j < p.cols.count; ++j) {
    col0[j] = p.cols.begin(j);
    col1[j] = p.cols.end(j);
  }
  for (int64_t plane = begin; plane < end; ++plane)
    for (int64_t i = 0; i < p.rows.count; ++i) {
      int64_t row0 = p.rows.begin(i), row1 = p.rows.end(i);
      for (int64_t j = 0; j < p.cols.count; ++j) f(plane, i * p.cols.count + j, Window{row0, row1, col0[j], col1[j]});
    }
}

template <class F>
void over_planes(const Planes& p, F&& f) {
  int64_t work = std::max<int64_t>(p.rows.size * p.cols.size, 1);
  parallel_for(0, p.count, std::max<int64_t>(1, 16384 / work), f);
}

template <class T>
T lowest() {
  if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

template <class T>
void max_planes(const Planes& p, const T* in, T* out, int64_t* indices) {
  int64_t area = p.rows.size * p.cols.size, windows = p.rows.count * p.cols.count, width = p.cols.size;
  int64_t row_step = p.rows.dilation, col_step = p.cols.dilation;
  over_planes(p, [&](int64_t begin, int64_t end) {
    over_windows(p, begin, end, [&](int64_t plane, int64_t at, const Window& w) {
      const T* from = in + plane * area;
      T best = lowest<T>();
      int64_t place = w.row0 * width + w.col0;
      for (int64_t y = w.row0; y < w.row1; y += row_step)
        for (int64_t x = w.col0; x < w.col1; x += col_step) {
          T v = from[y * width + x];
          if (v > best || is_nan(v)) {
            best = v;
            place = y * width + x;
          }
        }
      out[plane * windows + at] = best;
      indices[plane * windows + at] = place;
    });
  });
}

std::tuple<Tensor, Tensor> max_pool(const char* op, const Planes& p, const Tensor& self) {
  Tensor indices = new_tensor(self, p.output, DType::I64);
  if (self.is_meta() || indices.numel() == 0) return {new_tensor(self, p.output), indices};
  Tensor x = as_contiguous(widened(self)), out = new_tensor(x, p.output);
  visit_reals(x.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    max_planes<T>(p, x.data<T>(), out.data<T>(), indices.data<int64_t>());
  });
  return {as_dtype(out, self.dtype()), indices};
}

// Each plane adds its own gradients, in the order of the windows.
Tensor max_backward(const char* op, const Tensor& grad, const Tensor& self, const Tensor& indices) {
  STRATA_CHECK(grad.sizes() == indices.sizes() && grad.dim() == self.dim(), op,
               ": expected grad_output of the shape of indices, ", indices.sizes(), ", got ", grad.sizes());
  if (self.is_meta() || self.numel() == 0) return new_tensor(self, self.sizes());
  Tensor dy = as_contiguous(widened(grad)), at = as_contiguous(indices), dx = new_tensor(dy, self.sizes());
  fill_values(dx, Scalar(0));
  int64_t n = self.dim(), area = self.sizes()[n - 2] * self.sizes()[n - 1],
          windows = grad.sizes()[n - 2] * grad.sizes()[n - 1];
  visit_reals(dy.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = dy.data<T>();
    const int64_t* place = at.data<int64_t>();
    T* to = dx.data<T>();
    parallel_for(0, self.numel() / area, std::max<int64_t>(1, 16384 / area), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane)
        for (int64_t i = plane * windows; i < (plane + 1) * windows; ++i) {
          T& slot = to[plane * area + place[i]];
          slot = add_values<T>(slot, from[i]);
        }
    });
  });
  return as_dtype(dx, self.dtype());
}

// How many elements divide the sum of window (i, j).
struct Divisor {
  const Planes& p;
  bool include_padding;
  std::optional<int64_t> given;
  int64_t of(int64_t i, int64_t j, const Window& w) const {
    if (given) return *given;
    if (include_padding && !p.rows.even) return p.rows.padded(i) * p.cols.padded(j);
    return (w.row1 - w.row0) * (w.col1 - w.col0);
  }
};

Tensor average(const char* op, const Planes& p, const Divisor& divisor, const Tensor& self) {
  if (self.is_meta()) return new_tensor(self, p.output);
  Tensor x = as_contiguous(widened(self)), out = new_tensor(x, p.output);
  int64_t area = p.rows.size * p.cols.size, windows = p.rows.count * p.cols.count, width = p.cols.size;
  visit_reals(x.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.data<T>();
    T* to = out.data<T>();
    over_planes(p, [&](int64_t begin, int64_t end) {
      over_windows(p, begin, end, [&](int64_t plane, int64_t at, const Window& w) {
        T sum = 0;
        for (int64_t r = w.row0; r < w.row1; ++r)
          for (int64_t c = w.col0; c < w.col1; ++c) sum = add_values<T>(sum, in[plane * area + r * width + c]);
        int64_t d = divisor.of(at / p.cols.count, at % p.cols.count, w);
        to[plane * windows + at] = w.row0 < w.row1 && w.col0 < w.col1 ? T(sum / T(d)) : T(0);
      });
    });
  });
  return as_dtype(out, self.dtype());
}

Tensor average_backward(const char* op, const Planes& p, const Divisor& divisor, const Tensor& grad,
                        const Tensor& self) {
  STRATA_CHECK(grad.sizes() == IntArrayRef(p.output), op, ": expected grad_output of shape ", p.output, ", got ",
               grad.sizes());
  if (self.is_meta()) return new_tensor(self, self.sizes());
  Tensor dy = as_contiguous(widened(grad)), dx = new_tensor(dy, self.sizes());
  fill_values(dx, Scalar(0));
  int64_t area = p.rows.size * p.cols.size, windows = p.rows.count * p.cols.count, width = p.cols.size;
  visit_reals(dy.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    over_planes(p, [&](int64_t begin, int64_t end) {
      over_windows(p, begin, end, [&](int64_t plane, int64_t at, const Window& w) {
        T share = from[plane * windows + at] / T(divisor.of(at / p.cols.count, at % p.cols.count, w));
        for (int64_t r = w.row0; r < w.row1; ++r)
          for (int64_t c = w.col0; c < w.col1; ++c) {
            T& slot = to[plane * area + r * width + c];
            slot = add_values<T>(slot, share);
          }
      });
    });
  });
  return as_dtype(dx, self.dtype());
}

const int64_t kOne = 1;

void check_average(const char* op, const Tensor& self, std::optional<int64_t> divisor) {
  STRATA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.dtype() == DType::I64, "\"", op,
                               "\" not implemented for '", scalar_type_name(self.dtype()),
                               "'; convert the input with .to() first");
  STRATA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return max_pool("max_pool2d", sliding_planes("max_pool2d", self, kernel, stride, padding, dilation, ceil_mode), self);
}

Tensor max_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef,
                           bool, const Tensor& indices) {
  return max_backward("max_pool2d_with_indices_backward", grad, self, indices);
}

Tensor avg_pool2d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  check_average("avg_pool2d", self, divisor_override);
  Planes p = sliding_planes("avg_pool2d", self, kernel, stride, padding, IntArrayRef(kOne), ceil_mode);
  return average("avg_pool2d", p, {p, count_include_pad, divisor_override}, self);
}

Tensor avg_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  check_average("avg_pool2d_backward", self, divisor_override);
  Planes p = sliding_planes("avg_pool2d_backward", self, kernel, stride, padding, IntArrayRef(kOne), ceil_mode);
  return average_backward("avg_pool2d_backward", p, {p, count_include_pad, divisor_override}, grad, self);
}

Tensor adaptive_avg_pool2d_core(const Tensor& self, IntArrayRef output_size) {
  check_average("adaptive_avg_pool2d", self, std::nullopt);
  Planes p = even_planes("adaptive_avg_pool2d", self, output_size);
  return average("adaptive_avg_pool2d", p, {p, false, std::nullopt}, self);
}

Tensor adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& self) {
  int64_t n = grad.dim();
  STRATA_CHECK(n == self.dim() && n >= 3, "adaptive_avg_pool2d_backward: expected grad_output of ", self.dim(),
               " dims, got ", n);
  Planes p = even_planes("adaptive_avg_pool2d_backward", self, grad.sizes().slice(n - 2, 2));
  return average_backward("adaptive_avg_pool2d_backward", p, {p, false, std::nullopt}, grad, self);
}

std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntArrayRef output_size) {
  return max_pool("adaptive_max_pool2d", even_planes("adaptive_max_pool2d", self, output_size), self);
}

Tensor adaptive_max_pool2d_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return max_backward("adaptive_max_pool2d_backward", grad, self, indices);
}

// ---- one spatial dim, as two with a height of 1

namespace {

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

}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  Flat f = flat("max_pool1d", self, kernel, stride, padding, dilation);
  auto [values, indices] = ops::max_pool2d_with_indices(f.image, f.kernel, f.stride, f.padding, f.dilation, ceil_mode);
  return {ops::squeeze(values, -2), ops::squeeze(indices, -2)};
}

Tensor max_pool1d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                  bool ceil_mode) {
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

Tensor adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  STRATA_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2, got ", output_size);
  if (output_size[0] == 1 && output_size[1] == 1 && (self.dim() == 3 || self.dim() == 4)) {
    const int64_t dims[] = {-1, -2};
    return ops::mean(self, OptIntArrayRef(IntArrayRef(dims, 2)), true);
  }
  return ops::_adaptive_avg_pool2d(self, output_size);
}

}  // namespace strata::eager
