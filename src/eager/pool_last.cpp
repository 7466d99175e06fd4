// Max pooling with the channels innermost in memory: a printed kernel compares one place of a window with the best so
// far, for all channels.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/parallel.h"
#include "eager/kernels.h"
#include "eager/pointwise.h"
#include "eager/pointwise_loop.h"
#include "eager/pool.h"
#include "eager/visit.h"
#include "strata/generated/kernel_ops.h"

namespace strata::eager {

namespace {

constexpr int64_t kChannels = 256;  // whose maxima are kept at a time

template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

// The best of a window for up to kChannels channels.
template <class T>
class Best {
 public:
  explicit Best(StrataPointwiseFn take) : take_(take) {}

  void begin(int64_t place, int64_t channels) {
    const int64_t whole = (channels + kBlock - 1) / kBlock * kBlock;
    std::fill(best_, best_ + whole, lowest<T>());
    std::fill(place_, place_ + whole, int32_t(place));
  }

  void take(const T* from, int64_t place, int64_t channels) {
    const int64_t whole = channels / kBlock * kBlock, rest = channels - whole;
    alignas(16) const int64_t here[2] = {place, 0};
    if (whole) call(from, 0, whole / kBlock, here);
    if (rest == 0) return;
    alignas(64) T last[kBlock] = {};
    std::memcpy(last, from + whole, size_t(rest) * sizeof(T));
    call(last, whole, 1, here);
  }

  void end(T* values, int64_t* places, int64_t channels) const {
    std::copy(best_, best_ + channels, values);
    std::copy(place_, place_ + channels, places);
  }

 private:
  void call(const T* from, int64_t at, int64_t blocks, const int64_t* here) {
    constexpr int64_t wide = kBlock * sizeof(T), narrow = kBlock * sizeof(int32_t),
                      step[] = {wide, narrow, wide, wide, narrow};
    char *best = reinterpret_cast<char*>(best_ + at), *place = reinterpret_cast<char*>(place_ + at);
    char* const ptr[] = {best, place, reinterpret_cast<char*>(const_cast<T*>(from)), best, place};
    int32_t status = 0;
    take_(ptr, step, here, blocks, 0, &status);
  }

  StrataPointwiseFn take_;
  alignas(64) T best_[kChannels];
  alignas(64) int32_t place_[kChannels];
};

template <class T>
void max_windows(const Volumes& v, int64_t channels, StrataPointwiseFn take, const T* in, T* out, int64_t* indices) {
  const int64_t size = v.size(), windows = v.windows(), width = v.cols.size, height = v.rows.size;
  const int64_t plane = v.rows.count * v.cols.count;
  const int64_t grain = std::max<int64_t>(1, 4096 / channels);
  parallel_for(0, v.count / channels * windows, grain, [&](int64_t begin, int64_t end) {
    Best<T> best(take);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % windows, d = at / plane, r = at % plane / v.cols.count, c = at % v.cols.count;
      const int64_t z0 = v.depth.begin(d), y0 = v.rows.begin(r), x0 = v.cols.begin(c);
      const int64_t z1 = v.depth.end(d), y1 = v.rows.end(r), x1 = v.cols.end(c);
      const T* volume = in + i / windows * size * channels;
      for (int64_t first = 0; first < channels; first += kChannels) {
        const int64_t n = std::min(kChannels, channels - first);
        best.begin((z0 * height + y0) * width + x0, n);
        for (int64_t z = z0; z < z1; z += v.depth.dilation)
          for (int64_t y = y0; y < y1; y += v.rows.dilation)
            for (int64_t x = x0; x < x1; x += v.cols.dilation) {
              const int64_t here = (z * height + y) * width + x;
              best.take(volume + here * channels + first, here, n);
            }
        best.end(out + i * channels + first, indices + i * channels + first, n);
      }
    }
  });
}

}  // namespace

bool max_pool_last_fits(const Volumes& v, const Tensor& self) {
  return v.format != MemoryFormat::Contiguous && v.size() <= INT32_MAX && self.sizes()[1] >= kBlock;
}

std::tuple<Tensor, Tensor> max_pool_last(const char* op, const Volumes& v, const Tensor& self) {
  const DType t = wide_dtype(self.dtype());
  const StrataPointwiseFn take = kernel_for(kernels::max_place, t).pointwise;
  Tensor x = self;
  if (self.dtype() != t || !self.is_contiguous(v.format)) {
    x = new_tensor(self, self.sizes(), t, v.format);
    copy_values(x, self);
  }
  Tensor out = new_tensor(x, v.output, t, v.format), indices = new_tensor(x, v.output, DType::I64, v.format);
  visit_reals(t, op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    max_windows<T>(v, self.sizes()[1], take, x.data<T>(), out.data<T>(), indices.data<int64_t>());
  });
  if (t == self.dtype()) return {out, indices};
  Tensor narrow = new_tensor(self, v.output, self.dtype(), v.format);
  copy_values(narrow, out);
  return {narrow, indices};
}

}  // namespace strata::eager
