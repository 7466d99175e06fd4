// Fractional max pooling (Graham, 2014): along each dim the windows begin at places that a random number per plane
// chooses, int((i + u) * alpha) - int(u * alpha) with alpha = (size - kernel) / (count - 1), and the last at the end.
#include <algorithm>
#include <array>
#include <limits>

#include "base/inline_vec.h"
#include "core/parallel.h"
#include "eager/cast.h"
#include "eager/copy.h"
#include "eager/visit.h"
#include "strata/generated/eager_pool.h"

namespace strata::eager {

namespace {

constexpr const char* kAxisNames[] = {"time", "height", "width"};

struct Fractions {
  int64_t rank, batch, channels;
  std::array<int64_t, 3> size{1, 1, 1}, kernel{1, 1, 1}, count{1, 1, 1};  // depth, rows, columns
  DimVec output;
  int64_t volume() const { return size[0] * size[1] * size[2]; }
  int64_t windows() const { return count[0] * count[1] * count[2]; }
};

void check_samples(const char* op, const Fractions& f, const Tensor& self, const Tensor& samples) {
  STRATA_CHECK(samples.dtype() == self.dtype(), "Expect _random_samples to have the same dtype as input: ", op, " got ",
               samples.dtype(), " for an input of ", self.dtype());
  check_same_device(self, samples, op);
  STRATA_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim(), " (in ", op,
               ")");
  STRATA_CHECK(samples.sizes()[0] >= f.batch, "Expect _random_samples.size(0) no less then input batch size: ", op,
               " got ", samples.sizes()[0], " for a batch of ", f.batch);
  STRATA_CHECK(samples.sizes()[1] == f.channels, "Expect _random_samples.size(1) equals to input channel size: ", op,
               " got ", samples.sizes()[1], " for ", f.channels, " channels");
  STRATA_CHECK(samples.sizes()[2] == f.rank, "Expect _random_samples.size(2) equals to ", f.rank, "; got ",
               samples.sizes()[2], " (in ", op, ")");
}

Fractions fractions(const char* op, int64_t rank, const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                    const Tensor& samples) {
  auto given = [&](const char* what, IntArrayRef list) {
    STRATA_CHECK(list.size() == 1 || int64_t(list.size()) == rank, op, ": ", what,
                 " must either be a single int or tuple of Ints; got ", list);
  };
  given("kernel_size", kernel);
  given("output_size", output);
  const int64_t n = self.dim();
  STRATA_CHECK(n == rank + 1 || n == rank + 2, op, "(): Expected ", rank + 1, "D or ", rank + 2,
               "D tensor, but got: ", self.sizes());
  for (int64_t d = n == rank + 1 ? 0 : 1; d < n; ++d)
    STRATA_CHECK(self.sizes()[d] > 0, op, "(): Expected input to have non-zero size for non-batch dimensions, but got ",
                 self.sizes(), " with dimension ", d, " being empty.");
  Fractions f{rank, n == rank + 1 ? 1 : self.sizes()[0], self.sizes()[n - rank - 1]};
  f.output = DimVec(self.sizes());
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t axis = 3 - rank + d;
    f.size[axis] = self.sizes()[n - rank + d];
    f.kernel[axis] = kernel.size() == 1 ? kernel[0] : kernel[d];
    f.count[axis] = output.size() == 1 ? output[0] : output[d];
    STRATA_CHECK(f.kernel[axis] > 0 && f.count[axis] > 0, op,
                 "(): kernel_size and output_size must be greater than 0, but got ", kernel, " and ", output);
    // As PyTorch, which wants one element more of volumes than of planes.
    const int64_t room = f.size[axis] - (rank - 2);
    STRATA_CHECK(f.kernel[axis] <= room && f.count[axis] <= room - f.kernel[axis] + 1, op, "(): pool ",
                 kAxisNames[axis], " (", f.kernel[axis], ") too large relative to input ", kAxisNames[axis], " (",
                 f.size[axis], ")");
    f.output[n - rank + d] = f.count[axis];
  }
  STRATA_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"", op, "\" not implemented for '",
                               scalar_type_name(self.dtype()), "'; convert the input with .to() first");
  check_samples(op, f, self, samples);
  return f;
}

// Where the windows of one dim begin. The arithmetic is that of the input's dtype, each step rounded: T computes,
// `round` is the dtype's.
template <class T, class Round>
void place_windows(int64_t* begins, T sample, int64_t size, int64_t kernel, int64_t count, Round round) {
  if (count > 1) {
    const T alpha = round(round(T(size - kernel)) / round(T(count - 1)));
    const int64_t first = int64_t(round(sample * alpha));
    // Roundings of halves, and samples beyond [0, 1), must not lead out of the dim.
    for (int64_t i = 0; i + 1 < count; ++i)
      begins[i] = std::clamp<int64_t>(int64_t(round(round(round(T(i)) + sample) * alpha)) - first, 0, size - kernel);
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

std::tuple<Tensor, Tensor> fractional(const char* op, int64_t rank, const Tensor& self, IntArrayRef kernel,
                                      IntArrayRef output, const Tensor& samples) {
  Fractions f = fractions(op, rank, self, kernel, output, samples);
  Tensor indices = new_tensor(self, f.output, DType::I64);
  if (indices.is_meta() || indices.numel() == 0) return {new_tensor(self, f.output), indices};
  Tensor x = as_contiguous(widened(self)), u = as_contiguous(widened(samples)), out = new_tensor(x, f.output);
  const DType t = self.dtype();
  if (t == DType::F64)
    pool_volumes<double>(f, x.data<double>(), u.data<double>(), out.data<double>(), indices.data<int64_t>(),
                         [](double v) { return v; });
  else if (t == DType::F32)
    pool_volumes<float>(f, x.data<float>(), u.data<float>(), out.data<float>(), indices.data<int64_t>(),
                        [](float v) { return v; });
  else
    pool_volumes<float>(f, x.data<float>(), u.data<float>(), out.data<float>(), indices.data<int64_t>(),
                        [t](float v) { return rounded(v, t); });
  return {as_dtype(out, t), indices};
}

}  // namespace

std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                                                 const Tensor& samples) {
  return fractional("fractional_max_pool2d", 2, self, kernel, output, samples);
}

std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                                                 const Tensor& samples) {
  return fractional("fractional_max_pool3d", 3, self, kernel, output, samples);
}

}  // namespace strata::eager
