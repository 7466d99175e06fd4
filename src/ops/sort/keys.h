// Sorting by unsigned keys whose order is that of the values: NaN is the greatest, -0.0 equals 0.0. All selections take
// the first of equal elements, and so does the stable sort.
#pragma once
#include <bit>
#include <functional>
#include <vector>

#include "run/visit.h"

namespace strata::eager {

template <int bytes>
using KeyBits =
    std::conditional_t<bytes == 1, uint8_t,
                       std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

// From the bits of a value to its key.
template <class T>
inline KeyBits<sizeof(T)> sort_key(T value) {
  using U = KeyBits<sizeof(T)>;
  constexpr U sign = U(U(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? U(U(value) ^ sign) : U(value);
  } else {
    U bits = std::bit_cast<U>(value);
    constexpr U infinity = sizeof(T) == 8                ? U(0x7ff0000000000000)
                           : sizeof(T) == 4              ? U(0x7f800000)
                           : std::is_same_v<T, BFloat16> ? U(0x7f80)
                                                         : U(0x7c00);
    U size = U(bits & U(~sign));
    // Without a branch: signs are as good as random.
    const U number = U(bits ^ U(sign | U(-int(bits >> (8 * sizeof(T) - 1)))));
    return size > infinity ? U(~U(0)) : size == 0 ? sign : number;
  }
}

// f(Tag<T>) for every dtype that has an order.
template <class F>
auto visit_ordered(DType t, const char* name, F&& f) {
  if (t == DType::F16) return f(Tag<Half>());
  if (t == DType::BF16) return f(Tag<BFloat16>());
  STRATA_CHECK_NOT_IMPLEMENTED(!is_complex(t), "\"", name, "\" not implemented for '", scalar_type_name(t),
                               "': complex numbers have no order; take a real tensor such as .abs()");
  return visit_reals(t, name, static_cast<F&&>(f));
}

// A key and its position. Keys of up to 32 bits share one word with the position, so that all items differ.
struct WideItem {
  uint64_t key;
  int64_t position;
  bool operator<(const WideItem& o) const { return key != o.key ? key < o.key : position < o.position; }
};
template <class Key>
using SortItem = std::conditional_t<sizeof(Key) <= 4, uint64_t, WideItem>;

template <class Key>
inline SortItem<Key> make_item(Key key, int64_t position) {
  if constexpr (sizeof(Key) <= 4)
    return uint64_t(key) << 32 | uint64_t(position);
  else
    return WideItem{key, position};
}
inline int64_t item_position(uint64_t item) { return int64_t(item & 0xffffffffu); }
inline int64_t item_position(const WideItem& item) { return item.position; }
inline uint64_t item_key(uint64_t item) { return item >> 32; }
inline uint64_t item_key(const WideItem& item) { return item.key; }

// Ascending, by key and then by position. `bits` is the number of low key bits that may differ; `spare` has room for n.
void sort_items(uint64_t* items, uint64_t* spare, int64_t n, int bits);
void sort_items(WideItem* items, WideItem* spare, int64_t n, int bits);

// So few that they are put in order by insertion.
constexpr int64_t kFewItems = 12;
template <class Item>
inline void sort_few(Item* items, int64_t n) {
  for (int64_t i = 1; i < n; ++i)
    for (int64_t k = i; k > 0 && items[k] < items[k - 1]; --k) std::swap(items[k], items[k - 1]);
}

// The lines of a tensor along one dim.
struct Lines {
  int64_t count = 1, length = 1, step = 0;  // step in elements
  DimVec sizes, strides;                    // of the other dims, those that are walked in one step as one
  Lines(const Tensor& t, int64_t dim);
  int64_t offset(int64_t line) const;  // of its first element, in elements
};

// Items of a line in keys' order (complemented when descending).
template <class T, class Item>
void load_items(const T* line, int64_t step, int64_t n, bool descending, Item* items) {
  using Key = KeyBits<sizeof(T)>;
  for (int64_t i = 0; i < n; ++i) {
    Key key = sort_key(line[i * step]);
    items[i] = make_item<Key>(descending ? Key(~key) : key, i);
  }
}

}  // namespace strata::eager
