// sort and argsort.
#include <algorithm>
#include <memory>

#include "base/checked.h"
#include "core/parallel.h"
#include "ops/sort/keys.h"
#include "strata/generated/by_hand/sort.h"
#include "strata/generated/ops/create.h"

namespace strata::eager {

namespace {

inline uint64_t digit(uint64_t item, int shift) { return item >> (32 + shift); }
inline uint64_t digit(const WideItem& item, int shift) { return item.key >> shift; }

// Counting passes from the lowest digit up. Digits that are the same everywhere are skipped.
template <class Item>
[[gnu::noinline]] void radix_sort(Item* items, Item* spare, int64_t n, int bits) {
  constexpr int kWidth = 11;
  Item *from = items, *to = spare;
  std::vector<int64_t> count(size_t(1) << std::min(kWidth, bits));
  for (int shift = 0; shift < bits; shift += kWidth) {
    int width = std::min(kWidth, bits - shift);
    uint64_t mask = (uint64_t(1) << width) - 1;
    std::fill(count.begin(), count.end(), 0);
    in_steps(n, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++count[digit(from[i], shift) & mask];
    });
    if (count[digit(from[0], shift) & mask] == n) continue;
    int64_t first = 0;
    for (int64_t b = 0; b <= int64_t(mask); ++b) {
      int64_t c = count[b];
      count[b] = first;
      first += c;
    }
    in_steps(n, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) to[count[digit(from[i], shift) & mask]++] = from[i];
    });
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
}

template <class Item>
void sort_any(Item* items, Item* spare, int64_t n, int bits) {
  if (n <= kFewItems) return sort_few(items, n);
  if (std::is_sorted(items, items + n)) return;
  // A pass for each 11 bits, of which each also looks at its counts.
  if (n < (bits <= 8 ? 128 : bits <= 16 ? 256 : 512))
    std::sort(items, items + n);
  else
    radix_sort(items, spare, n, bits);
}

// The first `want` items of two sorted runs: how many come from the first run.
template <class Item>
int64_t merge_split(const Item* a, int64_t na, const Item* b, int64_t nb, int64_t want) {
  int64_t low = std::max<int64_t>(0, want - nb), high = std::min(na, want);
  while (low < high) {
    int64_t mid = (low + high) / 2;
    if (a[mid] < b[want - mid - 1])
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

// One long line: chunks are sorted side by side and merged in pairs; items all differ, so that the result is the same.
template <class Item>
void sort_long(Item* items, Item* spare, int64_t n, int bits) {
  int64_t chunks = 1;
  while (n / (chunks * 2) >= 32768 && chunks * 2 <= num_threads()) chunks *= 2;
  if (chunks == 1) return sort_any(items, spare, n, bits);
  int64_t size = (n + chunks - 1) / chunks;
  auto begin = [&](int64_t c) { return std::min(n, c * size); };
  parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) sort_any(items + begin(c), spare + begin(c), begin(c + 1) - begin(c), bits);
  });
  Item *from = items, *to = spare;
  const int64_t steps = 1 + (size >> 18);
  for (int64_t width = 1; width < chunks; width *= 2) {
    parallel_for(0, chunks * steps, 1, [&](int64_t b, int64_t e) {
      for (int64_t part = b; part < e; ++part) {
        // Each pair of runs is written in 2 * width parts or more.
        const int64_t parts = 2 * width * steps, pair = part / parts, k = part % parts;
        int64_t lo = begin(pair * 2 * width), mid = begin(pair * 2 * width + width), hi = begin((pair + 1) * 2 * width);
        int64_t total = hi - lo, first = total * k / parts, last = total * (k + 1) / parts;
        int64_t a0 = merge_split(from + lo, mid - lo, from + mid, hi - mid, first);
        int64_t a1 = merge_split(from + lo, mid - lo, from + mid, hi - mid, last);
        std::merge(from + lo + a0, from + lo + a1, from + mid + (first - a0), from + mid + (last - a1),
                   to + lo + first);
      }
    });
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
}

}  // namespace

void sort_items(uint64_t* items, uint64_t* spare, int64_t n, int bits) { sort_long(items, spare, n, bits); }
void sort_items(WideItem* items, WideItem* spare, int64_t n, int bits) { sort_long(items, spare, n, bits); }

Lines::Lines(const Tensor& t, int64_t dim) {
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t size = t.sizes()[d], stride = t.strides()[d];
    if (d == dim) {
      length = size;
      step = stride;
      continue;
    }
    count *= size;
    if (size == 1) continue;
    if (!sizes.empty() && strides.back() == size * stride) {
      sizes.back() *= size;
      strides.back() = stride;
    } else {
      sizes.push_back(size);
      strides.push_back(stride);
    }
  }
}

int64_t Lines::offset(int64_t line) const {
  if (sizes.empty()) return 0;
  int64_t at = 0;
  for (size_t d = sizes.size(); --d > 0;) {
    at += line % sizes[d] * strides[d];
    line /= sizes[d];
  }
  return at + line * strides[0];
}

void sort(const Tensor& values, const Tensor& indices, const Tensor& given, int64_t dim, bool descending) {
  if (given.numel() == 0) return;
  const Tensor self = truths(given);
  dim = wrap_dim(dim, self.dim());
  Lines in(self, dim), out(values, dim), at(indices, dim);
  visit_ordered(self.dtype(), "sort", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Item = SortItem<KeyBits<sizeof(T)>>;
    int64_t n = in.length;
    const T* from_lines = self.data<T>();
    T* to_lines = values.data<T>();
    int64_t* to_places = indices.data<int64_t>();
    parallel_for(0, in.count, std::max<int64_t>(1, 8192 / n), [&](int64_t b, int64_t e) {
      auto items = std::make_unique_for_overwrite<Item[]>(size_t(2 * n));
      for (int64_t l = b; l < e; ++l) {
        const T* line = from_lines + in.offset(l);
        load_items(line, in.step, n, descending, items.get());
        sort_items(items.get(), items.get() + n, n, 8 * sizeof(T));
        T* v = to_lines + out.offset(l);
        int64_t* p = to_places + at.offset(l);
        in_steps(n, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            int64_t from = item_position(items[i]);
            v[i * out.step] = line[from * in.step];
            p[i * at.step] = from;
          }
        });
      }
    });
  });
}

void sort_stable(const Tensor& values, const Tensor& indices, const Tensor& self, std::optional<bool>, int64_t dim,
                 bool descending) {
  sort(values, indices, self, dim, descending);
}

}  // namespace strata::eager
