// Random orders and choices: randperm and multinomial.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/parallel.h"
#include "core/promote.h"
#include "run/copy.h"
#include "run/random.h"
#include "strata/generated/by_hand/random.h"
#include "strata/generated/kernel_calls.h"

namespace strata::eager {

namespace {

struct Keyed {
  uint32_t high, low;  // the key's halves
  int64_t index;
};

// Stable order by 64-bit keys: counting passes over the high halves, then the rare runs of equal ones by the low
// halves.
void order_by_keys(std::vector<Keyed>& items) {
  size_t n = items.size();
  auto less = [](const Keyed& a, const Keyed& b) {
    return a.high != b.high ? a.high < b.high : a.low != b.low ? a.low < b.low : a.index < b.index;
  };
  if (n < 512) return std::sort(items.begin(), items.end(), less);
  std::vector<Keyed> other(n);
  constexpr int kBits = 11;
  for (int shift = 0; shift < 32; shift += kBits) {
    size_t start[(1 << kBits) + 1] = {};
    in_steps(int64_t(n), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++start[(items[i].high >> shift & ((1 << kBits) - 1)) + 1];
    });
    for (int i = 0; i < 1 << kBits; ++i) start[i + 1] += start[i];
    in_steps(int64_t(n), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) other[start[items[i].high >> shift & ((1 << kBits) - 1)]++] = items[i];
    });
    items.swap(other);
  }
  for (size_t i = 0; i < n;) {
    size_t end = i + 1;
    while (end < n && items[end].high == items[i].high) ++end;
    if (end - i > 1) std::sort(items.begin() + i, items.begin() + end, less);
    i = end;
  }
}

}  // namespace

void randperm(const Tensor& out, int64_t n, const Generator& generator, std::optional<DType>, std::optional<Device>) {
  PhiloxState state = or_default(generator, out).reserve(2 * n);
  std::vector<Keyed> items(static_cast<size_t>(n));
  parallel_for(0, n, 16384, [&](int64_t begin, int64_t end) {
    constexpr int64_t kChunk = 1024;
    uint32_t words[2 * kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      int64_t count = std::min(kChunk, end - i);
      philox_words(state, 2 * i, 2 * count, words);
      for (int64_t k = 0; k < count; ++k) items[i + k] = {words[2 * k + 1], words[2 * k], i + k};
    }
  });
  order_by_keys(items);
  const Tensor flat = out.dtype() == DType::I64 ? out : new_tensor(out, out.sizes(), DType::I64);
  int64_t* p = flat.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) p[i] = items[i].index;
  if (!flat.is_same(out)) copy_values(out, flat);
}

void randperm(const Tensor& out, int64_t n, std::optional<DType> dtype, std::optional<Device> device) {
  randperm(out, n, Generator(), dtype, device);
}

namespace {

void check_row(const double* p, int64_t n, int64_t wanted, bool replacement) {
  double sum = 0;
  int64_t positive = 0;
  for (int64_t i = 0; i < n; ++i) {
    STRATA_CHECK(std::isfinite(p[i]) && p[i] >= 0, "probability tensor contains either `inf`, `nan` or element < 0");
    sum += p[i];
    positive += p[i] > 0;
  }
  STRATA_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  STRATA_CHECK(replacement || positive >= wanted,
               "invalid multinomial distribution (with replacement=False, not enough "
               "non-negative category to sample)");
}

// By the inverse of the cumulative sums.
void choose_with_replacement(const double* p, int64_t n, const uint32_t* words, int64_t* out, int64_t count) {
  std::vector<double> sums(static_cast<size_t>(n));
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += p[i];
    sums[i] = sum;
    if (p[i] > 0) last = i;
  }
  for (int64_t k = 0; k < count; ++k) {
    double at = (double(words[k]) + 0.5) * 0x1p-32 * sum;
    out[k] = std::min<int64_t>(last, std::upper_bound(sums.begin(), sums.end(), at) - sums.begin());
  }
}

// The category whose exponential clock of rate p rings first, then the next one, and so on.
void choose_without_replacement(const double* p, int64_t n, const double* exponential, int64_t* out, int64_t count) {
  std::vector<double> time(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) time[i] = p[i] > 0 ? exponential[i] / p[i] : std::numeric_limits<double>::infinity();
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [&](int64_t a, int64_t b) { return time[a] != time[b] ? time[a] < time[b] : a < b; });
  std::copy_n(order.begin(), count, out);
}

}  // namespace

void multinomial(const Tensor& out, const Tensor& self, int64_t num_samples, bool replacement,
                 const Generator& generator) {
  const int64_t n = self.sizes().back(), rows = self.dim() == 2 ? self.sizes()[0] : 1;
  if (rows == 0) return;
  Tensor p = as_contiguous(as_dtype(self, DType::F64));
  const double* probabilities = p.data<double>();
  for (int64_t r = 0; r < rows; ++r) check_row(probabilities + r * n, n, num_samples, replacement);
  Generator g = or_default(generator, self);
  int64_t* chosen = out.data<int64_t>();
  if (replacement) {
    PhiloxState state = g.reserve(rows * num_samples);
    parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
      std::vector<uint32_t> words(static_cast<size_t>(num_samples));
      for (int64_t r = begin; r < end; ++r) {
        philox_words(state, r * num_samples, num_samples, words.data());
        choose_with_replacement(probabilities + r * n, n, words.data(), chosen + r * num_samples, num_samples);
      }
    });
    return;
  }
  Tensor clocks = new_tensor(self, self.sizes(), DType::F64);
  calls::draw_exponential(clocks, g, 1);
  parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      choose_without_replacement(probabilities + r * n, n, clocks.data<double>() + r * n, chosen + r * num_samples,
                                 num_samples);
  });
}

}  // namespace strata::eager
