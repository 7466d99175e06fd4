// Fractional max pooling (Graham, 2014): along each dim the windows begin at places that a random number per plane
// chooses, int((i + u) * alpha) - int(u * alpha) with alpha = (size - kernel) / (count - 1), and the last at the end.
#include <algorithm>
#include <array>
#include <limits>

#include "base/inline_vec.h"
#include "core/parallel.h"
#include "run/copy.h"
#include "run/loop/cast.h"
#include "run/visit.h"
#include "strata/generated/by_hand/pool.h"

namespace strata::eager {

namespace {

struct Fractions {
  int64_t rank, batch, channels;
  std::array<int64_t, 3> size{1, 1, 1}, kernel{1, 1, 1}, count{1, 1, 1};  // depth, rows, columns
  int64_t volume() const { return size[0] * size[1] * size[2]; }
  int64_t windows() const { return count[0] * count[1] * count[2]; }
};

Fractions fractions(int64_t rank, const Tensor& self, IntArrayRef kernel, IntArrayRef output) {
  const int64_t n = self.dim();
  Fractions f{rank, n == rank + 1 ? 1 : self.sizes()[0], self.sizes()[n - rank - 1]};
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t axis = 3 - rank + d;
    f.size[axis] = self.sizes()[n - rank + d];
    f.kernel[axis] = kernel.size() == 1 ? kernel[0] : kernel[d];
    f.count[axis] = output.size() == 1 ? output[0] : output[d];
  }
  return f;
}

// As expressions convert: NaN gives 0, what lies beyond the range its end.
template <class T>
int64_t whole(T v) {
  constexpr T kEnd = T(9223372036854775808.0);
  return v != v ? 0 : v >= kEnd ? INT64_MAX : v < -kEnd ? INT64_MIN : int64_t(v);
}

// Where the windows of one dim begin. The arithmetic is that of the input's dtype, each step rounded: T computes,
// `round` is the dtype's.
template <class T, class Round>
void place_windows(int64_t* begins, T sample, int64_t size, int64_t kernel, int64_t count, Round round) {
  if (count > 1) {
    const T alpha = round(round(T(size - kernel)) / round(T(count - 1)));
    const int64_t first = whole(round(sample * alpha));
    // Roundings of halves, and samples beyond [0, 1), must not lead out of the dim.
    for (int64_t i = 0; i + 1 < count; ++i)
      begins[i] = std::clamp<int64_t>(
          int64_t(uint64_t(whole(round(round(round(T(i)) + sample) * alpha))) - uint64_t(first)), 0, size - kernel);
  }
  begins[count - 1] = size - kernel;
}

template <class T, class Round>
void pool_volumes(const Fractions& f, const T* in, const T* samples, T* out, int64_t* indices, Round round) {
  const int64_t volume = f.volume(), windows = f.windows();
  parallel_for(0, f.batch * f.channels, std::max<int64_t>(1, 16384 / volume), [&](int64_t begin, int64_t end) {
    std::array<std::vector<int64_t>, 3> from;
    for (int64_t v = begin; v < end; ++v) {
      for (int64_t axis = 0; axis < 3; ++axis) {
        from[axis].assign(f.count[axis], 0);
        // Samples come in the order (columns, rows) for planes, (depth, rows, columns) for volumes.
        const int64_t at = f.rank == 2 ? 2 - axis : axis;
        if (axis >= 3 - f.rank)
          place_windows<T>(from[axis].data(), samples[v * f.rank + at], f.size[axis], f.kernel[axis], f.count[axis],
                           round);
      }
      const T* image = in + v * volume;
      for (int64_t w = 0; w < windows; ++w) {
        const int64_t z0 = from[0][w / (f.count[1] * f.count[2])], y0 = from[1][w / f.count[2] % f.count[1]],
                      x0 = from[2][w % f.count[2]];
        T best = -std::numeric_limits<T>::infinity();
        int64_t place = (z0 * f.size[1] + y0) * f.size[2] + x0;
        for (int64_t z = z0; z < z0 + f.kernel[0]; ++z)
          for (int64_t y = y0; y < y0 + f.kernel[1]; ++y)
            for (int64_t x = x0; x < x0 + f.kernel[2]; ++x) {
              const int64_t here = (z * f.size[1] + y) * f.size[2] + x;
              if (image[here] > best || image[here] != image[here]) {
                best = image[here];
                place = here;
              }
            }
        out[v * windows + w] = best;
        indices[v * windows + w] = place;
      }
    }
  });
}

// float16 and bfloat16 numbers as float32, rounded as the dtype rounds.
float rounded(float v, DType t) {
  uint16_t half;
  cast_fn(DType::F32, t)(reinterpret_cast<const char*>(&v), 4, reinterpret_cast<char*>(&half), 2, 1);
  cast_fn(t, DType::F32)(reinterpret_cast<const char*>(&half), 2, reinterpret_cast<char*>(&v), 4, 1);
  return v;
}

void fractional(int64_t rank, const Tensor& result, const Tensor& indices, const Tensor& self, IntArrayRef kernel,
                IntArrayRef output, const Tensor& samples) {
  if (indices.numel() == 0) return;
  const Fractions f = fractions(rank, self, kernel, output);
  const Tensor x = as_contiguous(widened(self)), u = as_contiguous(widened(samples));
  const DType t = self.dtype();
  const Tensor out = is_half(t) ? new_tensor(x, result.sizes()) : result;
  if (t == DType::F64)
    pool_volumes<double>(f, x.data<double>(), u.data<double>(), out.data<double>(), indices.data<int64_t>(),
                         [](double v) { return v; });
  else if (t == DType::F32)
    pool_volumes<float>(f, x.data<float>(), u.data<float>(), out.data<float>(), indices.data<int64_t>(),
                        [](float v) { return v; });
  else
    pool_volumes<float>(f, x.data<float>(), u.data<float>(), out.data<float>(), indices.data<int64_t>(),
                        [t](float v) { return rounded(v, t); });
  if (!out.is_same(result)) copy_values(result, out);
}

}  // namespace

void fractional_max_pool2d(const Tensor& result, const Tensor& indices, const Tensor& self, IntArrayRef kernel,
                           IntArrayRef output, const Tensor& samples) {
  fractional(2, result, indices, self, kernel, output, samples);
}

void fractional_max_pool3d(const Tensor& result, const Tensor& indices, const Tensor& self, IntArrayRef kernel,
                           IntArrayRef output, const Tensor& samples) {
  fractional(3, result, indices, self, kernel, output, samples);
}

}  // namespace strata::eager
