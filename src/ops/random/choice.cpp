// Random orders and choices: randperm and multinomial.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/call_memory.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "run/copy.h"
#include "run/random.h"
#include "strata/generated/by_hand/random.h"
#include "strata/generated/kernel_calls.h"

namespace strata::eager {

namespace {

template <class Index>
struct Keyed {
  uint32_t key;  // the upper word of an element's two: the lower one decides between equal ones, which are rare
  Index index;
};

// Elements in the order of their keys. Keys are uniform, so their leading bits give runs of about 256, which stay in
// the first-level cache, and the next 8 bits runs of one or two.
template <class Index>
void order_by_keys(const PhiloxState& state, int64_t n, int64_t* order) {
  using Item = Keyed<Index>;
  constexpr int kInner = 8, kMostOuter = 12, kFew = 32;
  const int outer = std::clamp(int(std::bit_width(uint64_t(n))) - kInner, 0, kMostOuter);
  const auto run_of = [&](const Item& item) { return uint64_t(item.key) << outer >> 32; };
  CallMemory memory(2 * CallMemory::rounded(n * int64_t(sizeof(Item))));
  auto* made = reinterpret_cast<Item*>(memory.take(n * int64_t(sizeof(Item))));
  auto* items = reinterpret_cast<Item*>(memory.take(n * int64_t(sizeof(Item))));
  parallel_for(0, n, 16384, [&](int64_t begin, int64_t end) {
    constexpr int64_t kChunk = 1024;
    uint32_t words[2 * kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t count = std::min(kChunk, end - i);
      philox_words(state, 2 * i, 2 * count, words);
      for (int64_t k = 0; k < count; ++k) made[i + k] = {words[2 * k + 1], Index(i + k)};
    }
  });
  std::vector<int64_t> start((size_t(1) << outer) + 1);
  in_steps(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++start[run_of(made[i]) + 1];
  });
  for (size_t r = 1; r < start.size(); ++r) start[r] += start[r - 1];
  std::vector<int64_t> next(start);
  in_steps(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) items[next[run_of(made[i])]++] = made[i];
  });
  const auto low = [&](const Item& item) {
    uint32_t words[2];
    philox_words(state, 2 * int64_t(item.index), 2, words);
    return words[0];
  };
  const auto by_low = [&](const Item& a, const Item& b) {
    const uint32_t x = low(a), y = low(b);
    return x != y ? x < y : a.index < b.index;
  };
  const auto by_key = [](const Item& a, const Item& b) { return a.key < b.key; };
  parallel_for(0, int64_t(start.size()) - 1, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Item *from = items + start[r], *last = items + start[r + 1];
      Item* to = made + start[r];
      const int64_t count = last - from;
      const auto inner_of = [&](const Item& item) { return uint32_t(item.key << outer) >> (32 - kInner); };
      int64_t at[(1 << kInner) + 1] = {};
      for (const Item* i = from; i < last; ++i) ++at[inner_of(*i) + 1];
      for (int k = 0; k < 1 << kInner; ++k) at[k + 1] += at[k];
      for (const Item* i = from; i < last; ++i) to[at[inner_of(*i)]++] = *i;  // at[k]: where the k-th run ends, then
      for (int k = 0; count > kFew << kInner && k < 1 << kInner; ++k)
        std::sort(to + (k ? at[k - 1] : 0), to + at[k], by_key);
      bool same = false;
      for (int64_t i = 1; i < count; ++i) {
        const Item item = to[i];
        int64_t p = i;
        for (; p > 0 && item.key < to[p - 1].key; --p) to[p] = to[p - 1];
        to[p] = item;
        same |= p > 0 && to[p - 1].key == item.key;
      }
      for (int64_t i = 0; same && i < count;) {
        const Item* equal = std::find_if(to + i, to + count, [&](const Item& item) { return item.key != to[i].key; });
        if (equal - (to + i) > 1) std::sort(to + i, to + (equal - to), by_low);
        i = equal - to;
      }
      for (int64_t i = 0; i < count; ++i) order[start[r] + i] = int64_t(to[i].index);
    }
  });
}

}  // namespace

void randperm(const Tensor& out, int64_t n, const Generator& generator, std::optional<DType>, std::optional<Device>) {
  PhiloxState state = or_default(generator, out).reserve(2 * n);
  const Tensor flat = out.dtype() == DType::I64 ? out : new_tensor(out, out.sizes(), DType::I64);
  const auto in_order = n >> 32 == 0 ? order_by_keys<uint32_t> : order_by_keys<uint64_t>;
  in_order(state, n, flat.data<int64_t>());
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
