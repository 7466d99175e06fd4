// topk, kthvalue, median and mode: elements of a line by rank.
#include <algorithm>

#include "base/checked.h"
#include "core/parallel.h"
#include "core/shape/index.h"
#include "ops/sort/keys.h"
#include "strata/generated/by_hand/sort.h"

namespace strata::eager {

namespace {

// The k smallest items of a line, in order. Long lines stream through a small buffer: what is not below the k smallest
// so far is passed over, a group of elements at a time.
template <class T, class Item>
void smallest_items(const T* line, int64_t step, int64_t n, int64_t k, bool descending, std::vector<Item>& items) {
  using Key = KeyBits<sizeof(T)>;
  constexpr int64_t kGroup = 16, kFew = 16;  // few are kept in order, which costs less than choosing them again
  if (k * 4 >= n || n <= kFewItems) {
    items.resize(size_t(n));
    load_items(line, step, n, descending, items.data());
    if (n <= kFewItems) return sort_few(items.data(), n);
  } else {
    const size_t room = size_t(2 * k);
    items.clear();
    items.reserve(room + kGroup);
    const Key flip = descending ? Key(~Key(0)) : Key(0);
    Key limit = Key(~Key(0)), keys[kGroup];
    for (int64_t i = 0; i < n; i += kGroup) {
      const int64_t count = std::min(kGroup, n - i);
      const T* group = line + i * step;
      if (step == 1 && count == kGroup)
        for (int64_t j = 0; j < kGroup; ++j) keys[j] = Key(sort_key(group[j]) ^ flip);
      else
        for (int64_t j = 0; j < count; ++j) keys[j] = Key(sort_key(group[j * step]) ^ flip);
      // Until there are k, everything is taken; later elements are behind equal ones.
      bool limited = int64_t(items.size()) >= k;
      Key least = limit;
      for (int64_t j = 0; limited && j < count; ++j) least = std::min(least, keys[j]);
      if (limited && least == limit) continue;
      for (int64_t j = 0; j < count; ++j) {
        if (limited && !(keys[j] < limit)) continue;
        items.push_back(make_item<Key>(keys[j], i + j));
        if (k > kFew) continue;
        for (size_t at = items.size() - 1; at > 0 && items[at] < items[at - 1]; --at)
          std::swap(items[at], items[at - 1]);
        if (int64_t(items.size()) > k) items.pop_back();
        if (int64_t(items.size()) == k) limit = item_key(items.back()), limited = true;
      }
      if (k <= kFew || items.size() < room) continue;
      std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
      items.resize(size_t(k));
      limit = item_key(items[size_t(k - 1)]);
    }
    if (k <= kFew) return;
  }
  std::partial_sort(items.begin(), items.begin() + k, items.end());
}

// choose(line, step, n, items) gives the position of each line's element, in contiguous results; indices may be
// undefined.
template <class Choose>
void choose_lines(const char* name, const Tensor& values, const Tensor& indices, const Tensor& given, int64_t dim,
                  Choose choose) {
  if (values.numel() == 0) return;
  const Tensor self = truths(given);
  if (self.dim() == 0) {  // of any dtype
    copy_values(values, self);
    if (indices.defined()) fill_values(indices, Scalar(0));
    return;
  }
  Lines in(self, wrap_dim(dim, self.dim()));
  visit_ordered(self.dtype(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Item = SortItem<KeyBits<sizeof(T)>>;
    parallel_for(0, in.count, std::max<int64_t>(1, 16384 / in.length), [&](int64_t b, int64_t e) {
      std::vector<Item> items;
      const T* lines = self.data<T>();
      T* to = values.data<T>();
      int64_t* places = indices.defined() ? indices.data<int64_t>() : nullptr;
      for (int64_t l = b; l < e; ++l) {
        const T* line = lines + in.offset(l);
        int64_t at = choose(line, in.step, in.length, items);
        to[l] = line[at * in.step];
        if (places) places[l] = at;
      }
    });
  });
}

// Position of the element of rank k in ascending order.
template <class T, class Item>
int64_t nth_position(const T* line, int64_t step, int64_t n, int64_t k, std::vector<Item>& items) {
  items.resize(size_t(n));
  load_items(line, step, n, false, items.data());
  n <= kFewItems ? sort_few(items.data(), n) : std::nth_element(items.begin(), items.begin() + k, items.end());
  return item_position(items[k]);
}

template <class T>
constexpr bool has_nan = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T>
bool is_nan_key(T value) {
  using Key = KeyBits<sizeof(T)>;
  if constexpr (has_nan<T>)
    return sort_key(value) == Key(~Key(0));
  else
    return false;
}

template <class T, class Item>
int64_t median_position(const T* line, int64_t step, int64_t n, bool ignore_nan, std::vector<Item>& items) {
  int64_t numbers = n, first_nan = 0;
  if constexpr (has_nan<T>) {
    numbers = 0;
    for (int64_t i = n; i-- > 0;) {
      if (is_nan_key(line[i * step]))
        first_nan = i;
      else
        ++numbers;
    }
  }
  if (numbers == 0 || (numbers < n && !ignore_nan)) return first_nan;
  return nth_position(line, step, n, (numbers - 1) / 2, items);
}

void median_lines(const char* name, const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                  bool ignore_nan) {
  choose_lines(name, values, indices, self, dim, [ignore_nan](const auto* line, int64_t step, int64_t n, auto& items) {
    return median_position(line, step, n, ignore_nan, items);
  });
}

void median_of_all(const char* name, const Tensor& result, const Tensor& self, bool ignore_nan) {
  if (self.numel() == 0) {
    // NaN, and for integers what PyTorch makes of it: the lowest where they have 32 or 64 bits, 0 below.
    const DType t = self.dtype();
    if (t == DType::I32 || t == DType::I64)
      return fill_values(result, Scalar(t == DType::I32 ? int64_t(INT32_MIN) : INT64_MIN));
    if (t == DType::Bool) return fill_values(result, Scalar(true));
    return fill_values(result, is_integral(t, false) ? Scalar(0) : Scalar(std::numeric_limits<double>::quiet_NaN()));
  }
  Tensor flat = as_contiguous(self);
  flat = flat.alias(IntArrayRef(flat.numel()), IntArrayRef(int64_t(1)), flat.storage_offset());
  median_lines(name, result, Tensor(), flat, 0, ignore_nan);
}

}  // namespace

void topk(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  if (values.numel() == 0) return;
  if (self.dim() == 0) k = 1;  // the result has as many dims, and its one element
  dim = wrap_dim(dim, self.dim());
  Lines in(self, dim), out(values, dim);
  visit_ordered(self.dtype(), "topk", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Item = SortItem<KeyBits<sizeof(T)>>;
    parallel_for(0, in.count, std::max<int64_t>(1, 16384 / in.length), [&](int64_t b, int64_t e) {
      std::vector<Item> items;
      const T* lines = self.data<T>();
      T* to = values.data<T>();
      int64_t* places = indices.data<int64_t>();
      for (int64_t l = b; l < e; ++l) {
        const T* line = lines + in.offset(l);
        smallest_items(line, in.step, in.length, k, largest, items);
        int64_t first = out.offset(l);
        for (int64_t i = 0; i < k; ++i) {
          int64_t at = item_position(items[i]);
          to[first + i * out.step] = line[at * in.step];
          places[first + i * out.step] = at;
        }
      }
    });
  });
}

void kthvalue(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k, int64_t dim, bool) {
  choose_lines("kthvalue", values, indices, self, dim, [k](const auto* line, int64_t step, int64_t n, auto& items) {
    return nth_position(line, step, n, k - 1, items);
  });
}

void median(const Tensor& result, const Tensor& self) { median_of_all("median", result, self, false); }
void nanmedian(const Tensor& result, const Tensor& self) { median_of_all("nanmedian", result, self, true); }
void median_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  median_lines("median", values, indices, self, dim, false);
}
void nanmedian_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  median_lines("nanmedian", values, indices, self, dim, true);
}

// The longest run of the sorted line, the smallest value of several; the index is that of its last element. A NaN
// equals nothing: it is a run of its own, and the last choice.
void mode(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  choose_lines("mode", values, indices, self, dim, [](const auto* line, int64_t step, int64_t n, auto& items) {
    items.resize(2 * n);
    load_items(line, step, n, false, items.data());
    sort_items(items.data(), items.data() + n, n, 8 * sizeof(*line));
    int64_t best = 0, best_end = 0;
    for (int64_t first = 0; first < n;) {
      int64_t end = first + 1;
      const bool number = !is_nan_key(line[item_position(items[first]) * step]);
      while (number && end < n && item_key(items[end]) == item_key(items[first])) ++end;
      if (end - first > best) {
        best = end - first;
        best_end = end;
      }
      first = end;
    }
    return item_position(items[best_end - 1]);
  });
}

}  // namespace strata::eager
