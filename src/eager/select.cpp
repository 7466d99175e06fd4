// topk, kthvalue, median and mode: elements of a line by rank.
#include <algorithm>

#include "base/checked.h"
#include "core/parallel.h"
#include "core/shape/index.h"
#include "eager/sort_keys.h"
#include "strata/generated/eager_sort.h"

namespace strata::eager {

namespace {

// The k smallest items of a line, in order. Long lines stream through a small buffer.
template <class T, class Item>
void smallest_items(const T* line, int64_t step, int64_t n, int64_t k, bool descending, std::vector<Item>& items) {
  using Key = KeyBits<sizeof(T)>;
  if (k * 4 >= n) {
    items.resize(n);
    load_items(line, step, n, descending, items.data());
  } else {
    size_t room = size_t(std::max<int64_t>(2 * k, 128));
    items.clear();
    items.reserve(room);
    Item limit{};
    bool limited = false;
    for (int64_t i = 0; i < n; ++i) {
      Key key = sort_key(line[i * step]);
      Item item = make_item<Key>(descending ? Key(~key) : key, i);
      if (limited && !(item < limit)) continue;
      items.push_back(item);
      if (items.size() < room) continue;
      std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
      limit = items[k - 1];
      limited = true;
      items.resize(k);
    }
  }
  std::partial_sort(items.begin(), items.begin() + k, items.end());
}

// Results with one value and one index per line of self.
struct PerLine {
  Tensor values, indices;
  PerLine(const Tensor& self, int64_t dim, bool keepdim) {
    DimVec sizes(self.sizes());
    if (self.dim() > 0) {
      if (keepdim)
        sizes[dim] = 1;
      else
        sizes.erase(dim);
    }
    values = new_tensor(self, sizes);
    indices = new_tensor(self, sizes, DType::I64);
  }
};

void check_not_empty(const char* name, const Tensor& self, int64_t dim) {
  STRATA_CHECK_INDEX(self.dim() == 0 || self.sizes()[dim] > 0, name, "(): Expected reduction dim ", dim,
                     " to have non-zero size.");
}

// choose(line, step, n, items) gives the position of each line's element.
template <class Choose>
std::tuple<Tensor, Tensor> choose_lines(const char* name, const Tensor& self, int64_t dim, bool keepdim,
                                        Choose choose) {
  visit_ordered(self.dtype(), name, [](auto) {});  // raises for dtypes without an order, elements or not
  PerLine r(self, dim, keepdim);
  if (r.values.is_meta() || r.values.numel() == 0) return {r.values, r.indices};
  Lines in(self, dim);
  check_line(name, in.length, self.itemsize());
  visit_ordered(self.dtype(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Item = SortItem<KeyBits<sizeof(T)>>;
    parallel_for(0, in.count, std::max<int64_t>(1, 16384 / in.length), [&](int64_t b, int64_t e) {
      std::vector<Item> items;
      for (int64_t l = b; l < e; ++l) {
        const T* line = self.data<T>() + in.offset(l);
        int64_t at = choose(line, in.step, in.length, items);
        r.values.data<T>()[l] = line[at * in.step];
        r.indices.data<int64_t>()[l] = at;
      }
    });
  });
  return {r.values, r.indices};
}

// Position of the element of rank k in ascending order.
template <class T, class Item>
int64_t nth_position(const T* line, int64_t step, int64_t n, int64_t k, std::vector<Item>& items) {
  items.resize(n);
  load_items(line, step, n, false, items.data());
  std::nth_element(items.begin(), items.begin() + k, items.end());
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

std::tuple<Tensor, Tensor> median_lines(const char* name, const Tensor& self, int64_t dim, bool keepdim,
                                        bool ignore_nan) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK_NOT_IMPLEMENTED(self.dtype() != DType::Bool, "\"median_cpu\" not implemented for 'Bool'");
  check_not_empty(name, self, dim);
  return choose_lines(name, self, dim, keepdim, [ignore_nan](const auto* line, int64_t step, int64_t n, auto& items) {
    return median_position(line, step, n, ignore_nan, items);
  });
}

Tensor median_of_all(const char* name, const Tensor& self, bool ignore_nan) {
  if (self.numel() == 0) {
    Tensor none = new_tensor(self, {});
    if (none.is_meta()) return none;
    // NaN, and for integers what PyTorch makes of it: the lowest where they have 32 or 64 bits, 0 below.
    const DType t = self.dtype();
    if (t == DType::I32 || t == DType::I64)
      fill_values(none, Scalar(t == DType::I32 ? int64_t(INT32_MIN) : INT64_MIN));
    else if (t == DType::Bool)
      fill_values(none, Scalar(true));
    else
      fill_values(none, is_integral(t, false) ? Scalar(0) : Scalar(std::numeric_limits<double>::quiet_NaN()));
    return none;
  }
  Tensor flat = as_contiguous(self);
  flat = flat.alias(IntArrayRef(flat.numel()), IntArrayRef(int64_t(1)), flat.storage_offset());
  return std::get<0>(median_lines(name, flat, 0, false, ignore_nan));
}

}  // namespace

std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK(k >= 0 && k <= (self.dim() ? self.sizes()[dim] : 1), "selected index k out of range");
  STRATA_CHECK(self.dtype() != DType::Bool && !self.is_complex(), "topk does not support ",
               self.is_complex() ? "complex" : "bool", " dtypes on CPU; convert self first");
  DimVec sizes = shape::with_dim(DimVec(self.sizes()), dim, k);
  Tensor values = new_tensor(self, sizes), indices = new_tensor(self, sizes, DType::I64);
  if (values.is_meta() || values.numel() == 0 || k == 0) return {values, indices};
  Lines in(self, dim), out(values, dim);
  check_line("topk", in.length, self.itemsize());
  visit_ordered(self.dtype(), "topk", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Item = SortItem<KeyBits<sizeof(T)>>;
    parallel_for(0, in.count, std::max<int64_t>(1, 16384 / in.length), [&](int64_t b, int64_t e) {
      std::vector<Item> items;
      for (int64_t l = b; l < e; ++l) {
        const T* line = self.data<T>() + in.offset(l);
        smallest_items(line, in.step, in.length, k, largest, items);
        int64_t first = out.offset(l);
        for (int64_t i = 0; i < k; ++i) {
          int64_t at = item_position(items[i]);
          values.data<T>()[first + i * out.step] = line[at * in.step];
          indices.data<int64_t>()[first + i * out.step] = at;
        }
      }
    });
  });
  return {values, indices};
}

std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, self.dim());
  check_not_empty("kthvalue", self, dim);
  STRATA_CHECK_NOT_IMPLEMENTED(self.dtype() != DType::Bool || self.dim() == 0,
                               "\"kthvalue_cpu\" not implemented for 'Bool'");
  STRATA_CHECK(k >= 1 && k <= (self.dim() ? self.sizes()[dim] : 1),
               "kthvalue(): selected number k out of range for dimension ", dim);
  return choose_lines("kthvalue", self, dim, keepdim, [k](const auto* line, int64_t step, int64_t n, auto& items) {
    return nth_position(line, step, n, k - 1, items);
  });
}

Tensor median(const Tensor& self) { return median_of_all("median", self, false); }
Tensor nanmedian(const Tensor& self) { return median_of_all("nanmedian", self, true); }
std::tuple<Tensor, Tensor> median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return median_lines("median", self, dim, keepdim, false);
}
std::tuple<Tensor, Tensor> nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return median_lines("nanmedian", self, dim, keepdim, true);
}

// The longest run of the sorted line, the smallest value of several; the index is that of its last element. A NaN
// equals nothing: it is a run of its own, and the last choice.
std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, self.dim());
  check_not_empty("mode", self, dim);
  return choose_lines("mode", self, dim, keepdim, [](const auto* line, int64_t step, int64_t n, auto& items) {
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
