// Max and average pooling over volumes, one after the other; volumes are divided among threads.
#include "eager/pool.h"

#include <algorithm>
#include <limits>

#include "core/parallel.h"
#include "eager/visit.h"
#include "strata/generated/eager_pool.h"

namespace strata::eager {

namespace {

struct Range {
  int64_t first, last;  // half open
};
struct Window {
  Range z, y, x;
  int64_t volume() const { return (z.last - z.first) * (y.last - y.first) * (x.last - x.first); }
  bool empty() const { return z.first >= z.last || y.first >= y.last || x.first >= x.last; }
};

// f(volume, index of the window in its volume, window) for all windows of volumes [begin, end).
template <class F>
void over_windows(const Volumes& v, int64_t begin, int64_t end, F&& f) {
  std::vector<Range> columns(v.cols.count);
  for (int64_t j = 0; j < v.cols.count; ++j) columns[j] = {v.cols.begin(j), v.cols.end(j)};
  for (int64_t volume = begin; volume < end; ++volume) {
    int64_t at = 0;
    for (int64_t d = 0; d < v.depth.count; ++d) {
      Range z{v.depth.begin(d), v.depth.end(d)};
      for (int64_t i = 0; i < v.rows.count; ++i) {
        Range y{v.rows.begin(i), v.rows.end(i)};
        for (const Range& x : columns) f(volume, at++, Window{z, y, x});
      }
    }
  }
}

template <class F>
void over_volumes(const Volumes& v, F&& f) {
  parallel_for(0, v.count, std::max<int64_t>(1, 16384 / std::max<int64_t>(v.size(), 1)), f);
}

// f(place) for the elements of a window without dilation, in row-major order.
template <class F>
inline void over_places(const Volumes& v, const Window& w, F&& f) {
  for (int64_t z = w.z.first; z < w.z.last; ++z)
    for (int64_t y = w.y.first; y < w.y.last; ++y) {
      int64_t row = (z * v.rows.size + y) * v.cols.size;
      for (int64_t x = w.x.first; x < w.x.last; ++x) f(row + x);
    }
}

void check_numbers(const char* op, const Tensor& self, bool fits) {
  STRATA_CHECK_NOT_IMPLEMENTED(fits, "\"", op, "\" not implemented for '", scalar_type_name(self.dtype()),
                               "'; convert the input with .to() first");
}

template <class T>
T lowest() {
  if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

template <class T>
void max_volumes(const Volumes& v, const T* in, T* out, int64_t* indices) {
  int64_t size = v.size(), windows = v.windows(), width = v.cols.size, height = v.rows.size;
  int64_t deep = v.depth.dilation, down = v.rows.dilation, across = v.cols.dilation;
  over_volumes(v, [&](int64_t begin, int64_t end) {
    over_windows(v, begin, end, [&](int64_t volume, int64_t at, const Window& w) {
      const T* from = in + volume * size;
      T best = lowest<T>();
      int64_t place = (w.z.first * height + w.y.first) * width + w.x.first;
      for (int64_t z = w.z.first; z < w.z.last; z += deep)
        for (int64_t y = w.y.first; y < w.y.last; y += down) {
          int64_t row = (z * height + y) * width;
          for (int64_t x = w.x.first; x < w.x.last; x += across) {
            T value = from[row + x];
            bool better = (value > best) | is_nan(value);  // without a branch, which chance would decide
            best = better ? value : best;
            place = better ? row + x : place;
          }
        }
      out[volume * windows + at] = best;
      indices[volume * windows + at] = place;
    });
  });
}

std::tuple<Tensor, Tensor> max_pool(const char* op, const Volumes& v, const Tensor& self) {
  Tensor indices = new_tensor(self, v.output, DType::I64);
  if (indices.numel() > 0) check_numbers(op, self, !self.is_complex());
  if (self.is_meta() || indices.numel() == 0)
    return {new_tensor(self, v.output, self.dtype(), v.format), new_tensor(self, v.output, DType::I64, v.format)};
  if (max_pool_last_fits(v, self)) return max_pool_last(op, v, self);
  Tensor x = as_contiguous(widened(self)), out = new_tensor(x, v.output);
  visit_reals(x.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    max_volumes<T>(v, x.data<T>(), out.data<T>(), indices.data<int64_t>());
  });
  return {in_format(as_dtype(out, self.dtype()), v.format), in_format(indices, v.format)};
}

// How many elements divide the sum of a window.
struct Divisor {
  const Volumes& v;
  bool include_padding;
  std::optional<int64_t> given;
  int64_t of(int64_t at, const Window& w) const {
    if (given) return *given;
    if (!include_padding || v.rows.even) return w.volume();
    int64_t plane = v.rows.count * v.cols.count;
    return v.depth.padded(at / plane) * v.rows.padded(at % plane / v.cols.count) * v.cols.padded(at % v.cols.count);
  }
};

Tensor average(const char* op, const Volumes& v, const Divisor& divisor, const Tensor& self) {
  if (self.is_meta() || self.numel() == 0) return new_tensor(self, v.output, self.dtype(), v.format);
  Tensor x = as_contiguous(widened(self)), out = new_tensor(x, v.output);
  int64_t size = v.size(), windows = v.windows();
  visit_reals(x.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.data<T>();
    T* to = out.data<T>();
    over_volumes(v, [&](int64_t begin, int64_t end) {
      over_windows(v, begin, end, [&](int64_t volume, int64_t at, const Window& w) {
        const T* from = in + volume * size;
        T sum = 0;
        over_places(v, w, [&](int64_t place) { sum = add_values<T>(sum, from[place]); });
        to[volume * windows + at] = w.empty() ? T(0) : T(sum / T(divisor.of(at, w)));
      });
    });
  });
  return in_format(as_dtype(out, self.dtype()), v.format);
}

Tensor average_backward(const char* op, const Volumes& v, const Divisor& divisor, const Tensor& grad,
                        const Tensor& self) {
  STRATA_CHECK(grad.sizes() == IntArrayRef(v.output), op, ": expected grad_output of shape ", v.output, ", got ",
               grad.sizes());
  STRATA_CHECK(grad.dtype() == self.dtype(), op, ": expected grad_output of dtype ", self.dtype(), ", got ",
               grad.dtype());
  if (self.is_meta() || self.numel() == 0) return new_tensor(self, self.sizes(), self.dtype(), v.format);
  Tensor dy = as_contiguous(widened(grad)), dx = new_tensor(dy, self.sizes());
  fill_values(dx, Scalar(0));
  int64_t size = v.size(), windows = v.windows();
  visit_reals(dy.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    over_volumes(v, [&](int64_t begin, int64_t end) {
      over_windows(v, begin, end, [&](int64_t volume, int64_t at, const Window& w) {
        if (w.empty()) return;
        T share = from[volume * windows + at] / T(divisor.of(at, w));
        over_places(v, w, [&](int64_t place) {
          T& slot = to[volume * size + place];
          slot = add_values<T>(slot, share);
        });
      });
    });
  });
  return in_format(as_dtype(dx, self.dtype()), v.format);
}

const int64_t kOne = 1;

Tensor sliding_average(const char* op, int64_t rank, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                       IntArrayRef padding, bool ceil_mode, bool include_padding, std::optional<int64_t> divisor) {
  STRATA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
  Volumes v = sliding_volumes(op, rank, self, kernel, stride, padding, IntArrayRef(kOne), ceil_mode);
  check_numbers(op, self, self.is_floating_point() || self.dtype() == DType::I64);
  return average(op, v, {v, include_padding, divisor}, self);
}

Tensor sliding_average_backward(const char* op, int64_t rank, const Tensor& grad, const Tensor& self,
                                IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                                bool include_padding, std::optional<int64_t> divisor) {
  STRATA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
  Volumes v = sliding_volumes(op, rank, self, kernel, stride, padding, IntArrayRef(kOne), ceil_mode);
  check_numbers(op, self, self.is_floating_point());
  return average_backward(op, v, {v, include_padding, divisor}, grad, self);
}

Tensor even_average(const char* op, int64_t rank, const Tensor& self, IntArrayRef output_size) {
  Volumes v = even_volumes(op, rank, self, output_size);
  check_numbers(op, self, self.is_floating_point() || (rank == 2 && self.numel() == 0));
  return average(op, v, {v, false, std::nullopt}, self);
}

Tensor even_average_backward(const char* op, int64_t rank, const Tensor& grad, const Tensor& self) {
  int64_t n = grad.dim();
  STRATA_CHECK(n == self.dim() && n > rank, op, ": expected grad_output of ", self.dim(), " dims, got ", n);
  Volumes v = even_volumes(op, rank, self, grad.sizes().slice(n - rank, rank));
  check_numbers(op, self, self.is_floating_point());
  return average_backward(op, v, {v, false, std::nullopt}, grad, self);
}

std::tuple<Tensor, Tensor> sliding_max(const char* op, int64_t rank, const Tensor& self, IntArrayRef kernel,
                                       IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  Volumes v = sliding_volumes(op, rank, self, kernel, stride, padding, dilation, ceil_mode);
  v.format = batch_format(rank, self);
  check_numbers(op, self, self.dtype() != DType::Bool);
  return max_pool(op, v, self);
}

std::tuple<Tensor, Tensor> even_max(const char* op, int64_t rank, const Tensor& self, IntArrayRef output_size) {
  Volumes v = even_volumes(op, rank, self, output_size);
  check_numbers(op, self, self.is_floating_point());
  return max_pool(op, v, self);
}

}  // namespace

Tensor max_pool_backward(const char* op, int64_t rank, const Tensor& grad, const Tensor& self, const Tensor& indices) {
  STRATA_CHECK(grad.sizes() == indices.sizes() && grad.dim() == self.dim() && self.dim() >= rank, op,
               ": expected grad_output of the shape of indices, ", indices.sizes(), ", got ", grad.sizes());
  check_numbers(op, self, self.is_floating_point());
  STRATA_CHECK(grad.dtype() == self.dtype(), op, ": expected grad_output of dtype ", self.dtype(), ", got ",
               grad.dtype());
  STRATA_CHECK(indices.dtype() == DType::I64, op, ": expected indices of dtype int64, got ", indices.dtype());
  for (int64_t d = 0; d < self.dim() - rank; ++d)
    STRATA_CHECK(grad.sizes()[d] == self.sizes()[d], op, ": expected grad_output and self to agree in dim ", d,
                 ", got shapes ", grad.sizes(), " and ", self.sizes());
  const MemoryFormat format = batch_format(rank, self);
  if (self.is_meta() || self.numel() == 0) return new_tensor(self, self.sizes(), self.dtype(), format);
  Tensor dy = as_contiguous(widened(grad)), at = as_contiguous(indices), dx = new_tensor(dy, self.sizes());
  fill_values(dx, Scalar(0));
  int64_t size = 1, windows = 1;
  for (int64_t d = self.dim() - rank; d < self.dim(); ++d) {
    size *= self.sizes()[d];
    windows *= grad.sizes()[d];
  }
  const int64_t* place = at.data<int64_t>();
  for (int64_t i = 0; i < at.numel(); ++i)
    STRATA_CHECK(place[i] >= 0 && place[i] < size, op, ": found an invalid max index: ", place[i], " (there are ", size,
                 " positions)");
  visit_reals(dy.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    parallel_for(0, self.numel() / size, std::max<int64_t>(1, 16384 / size), [&](int64_t begin, int64_t end) {
      for (int64_t volume = begin; volume < end; ++volume)
        for (int64_t i = volume * windows; i < (volume + 1) * windows; ++i) {
          T& slot = to[volume * size + place[i]];
          slot = add_values<T>(slot, from[i]);
        }
    });
  });
  return in_format(as_dtype(dx, self.dtype()), format);
}

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return sliding_max("max_pool2d", 2, self, kernel, stride, padding, dilation, ceil_mode);
}

Tensor max_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef,
                           bool, const Tensor& indices) {
  return max_pool_backward("max_pool2d_backward", 2, grad, self, indices);
}

Tensor avg_pool2d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return sliding_average("avg_pool2d", 2, self, kernel, stride, padding, ceil_mode, count_include_pad,
                         divisor_override);
}

Tensor avg_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return sliding_average_backward("avg_pool2d_backward", 2, grad, self, kernel, stride, padding, ceil_mode,
                                  count_include_pad, divisor_override);
}

Tensor adaptive_avg_pool2d_core(const Tensor& self, IntArrayRef output_size) {
  return even_average("adaptive_avg_pool2d", 2, self, output_size);
}

Tensor adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& self) {
  return even_average_backward("adaptive_avg_pool2d_backward", 2, grad, self);
}

std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntArrayRef output_size) {
  return even_max("adaptive_max_pool2d", 2, self, output_size);
}

Tensor adaptive_max_pool2d_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return max_pool_backward("adaptive_max_pool2d_backward", 2, grad, self, indices);
}

std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return sliding_max("max_pool3d", 3, self, kernel, stride, padding, dilation, ceil_mode);
}

Tensor max_pool3d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef,
                           bool, const Tensor& indices) {
  return max_pool_backward("max_pool3d_backward", 3, grad, self, indices);
}

Tensor avg_pool3d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return sliding_average("avg_pool3d", 3, self, kernel, stride, padding, ceil_mode, count_include_pad,
                         divisor_override);
}

Tensor avg_pool3d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return sliding_average_backward("avg_pool3d_backward", 3, grad, self, kernel, stride, padding, ceil_mode,
                                  count_include_pad, divisor_override);
}

Tensor adaptive_avg_pool3d_core(const Tensor& self, IntArrayRef output_size) {
  return even_average("adaptive_avg_pool3d", 3, self, output_size);
}

Tensor adaptive_avg_pool3d_backward(const Tensor& grad, const Tensor& self) {
  return even_average_backward("adaptive_avg_pool3d_backward", 3, grad, self);
}

std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& self, IntArrayRef output_size) {
  return even_max("adaptive_max_pool3d", 3, self, output_size);
}

Tensor adaptive_max_pool3d_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return max_pool_backward("adaptive_max_pool3d_backward", 3, grad, self, indices);
}

}  // namespace strata::eager
