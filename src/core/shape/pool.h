// Windows of pooling and rules for it. Windows slide over the last two or three dims, or cover them evenly.
#pragma once
#include <optional>

#include "core/shape/arithmetic.h"
#include "core/shape/prepared.h"

namespace strata::shape {

// Windows along one dim. With ceil_mode a last window may hang over the end, but must begin inside or in the padding
// before it.
template <class S>
S pool_size(const S& input, const S& kernel, const S& stride, const S& padding, const S& dilation, bool ceil_mode) {
  S span = plus(input, times(S(2), padding)) - kernel_reach(kernel, dilation) - S(1);
  if (!ceil_mode) return span / stride + S(1);
  S count = (plus(span, stride) - S(1)) / stride + S(1);
  return times(S(count - S(1)), stride) >= input + padding ? count - S(1) : count;
}

// Of `count` windows that cover `size` evenly, the i-th begins and ends here.
template <class S>
S even_begin(const S& i, const S& size, const S& count) {
  return i * size / count;
}
template <class S>
S even_end(const S& i, const S& size, const S& count) {
  return ((i + S(1)) * size + count - S(1)) / count;
}

template <class S>
struct PoolAxis {
  S size, count;  // of the input, of the windows
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
};

// One for each pooled dim. They check the arguments as PyTorch does. An empty stride is the kernel.
template <class S>
using PoolAxes = InlineVec<PoolAxis<S>, 3>;
template <class S>
PoolAxes<S> sliding_axes(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel, IntArrayRef stride,
                         IntArrayRef padding, IntArrayRef dilation, bool ceil_mode);
template <class S>
PoolAxes<S> even_axes(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef output_size);

// Kernels have three pooled dims; of two, the first is absent. Names: groups f (windows), g (self), k (in a window);
// values step, pad, apart.
template <class S>
Prepared<S> max_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode);
template <class S>
Prepared<S> avg_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, bool ceil_mode, std::optional<int64_t> divisor);
template <class S>
Prepared<S> adaptive_avg_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef output_size);
template <class S>
Prepared<S> adaptive_max_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef output_size);

// Windows at places that the samples (batch, channels, rank) choose, and the positions of their largest elements.
template <class S>
Prepared<S> fractional_max_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel,
                                IntArrayRef output_size, const Geometry<S>& samples);

// Gradients: f of grad, g of the result.
template <class S>
Prepared<S> avg_pool_backward(const char* op, int64_t rank, const Geometry<S>& grad, const Geometry<S>& self,
                              IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                              std::optional<int64_t> divisor);
template <class S>
Prepared<S> adaptive_avg_pool_backward(const char* op, int64_t rank, const Geometry<S>& grad, const Geometry<S>& self);
// Of what was chosen: i of grad and indices, n of the result, each all pooled dims as one.
template <class S>
Prepared<S> max_pool_backward(const char* op, int64_t rank, const Geometry<S>& grad, const Geometry<S>& self,
                              const Geometry<S>& indices);

}  // namespace strata::shape
