// Gradients of pooling over volumes, one after the other; volumes are divided among threads.
#include "eager/pool.h"

#include <algorithm>

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

Tensor sliding_average_backward(const char* op, int64_t rank, const Tensor& grad, const Tensor& self,
                                IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                                bool include_padding, std::optional<int64_t> divisor) {
  STRATA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
  Volumes v = sliding_volumes(op, rank, self, kernel, stride, padding, IntArrayRef(kOne), ceil_mode);
  check_numbers(op, self, self.is_floating_point());
  return average_backward(op, v, {v, include_padding, divisor}, grad, self);
}

Tensor even_average_backward(const char* op, int64_t rank, const Tensor& grad, const Tensor& self) {
  int64_t n = grad.dim();
  STRATA_CHECK(n == self.dim() && n > rank, op, ": expected grad_output of ", self.dim(), " dims, got ", n);
  Volumes v = even_volumes(op, rank, self, grad.sizes().slice(n - rank, rank));
  check_numbers(op, self, self.is_floating_point());
  return average_backward(op, v, {v, false, std::nullopt}, grad, self);
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

Tensor max_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef,
                           bool, const Tensor& indices) {
  return max_pool_backward("max_pool2d_backward", 2, grad, self, indices);
}

Tensor avg_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return sliding_average_backward("avg_pool2d_backward", 2, grad, self, kernel, stride, padding, ceil_mode,
                                  count_include_pad, divisor_override);
}

Tensor adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& self) {
  return even_average_backward("adaptive_avg_pool2d_backward", 2, grad, self);
}

Tensor adaptive_max_pool2d_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return max_pool_backward("adaptive_max_pool2d_backward", 2, grad, self, indices);
}

Tensor max_pool3d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef,
                           bool, const Tensor& indices) {
  return max_pool_backward("max_pool3d_backward", 3, grad, self, indices);
}

Tensor avg_pool3d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return sliding_average_backward("avg_pool3d_backward", 3, grad, self, kernel, stride, padding, ceil_mode,
                                  count_include_pad, divisor_override);
}

Tensor adaptive_avg_pool3d_backward(const Tensor& grad, const Tensor& self) {
  return even_average_backward("adaptive_avg_pool3d_backward", 3, grad, self);
}

Tensor adaptive_max_pool3d_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return max_pool_backward("adaptive_max_pool3d_backward", 3, grad, self, indices);
}

}  // namespace strata::eager
