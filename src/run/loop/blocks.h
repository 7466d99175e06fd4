// Elements of any width laid out for kernels, which take whole blocks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "run/loop/contiguous.h"

namespace strata::eager {

// `rest` elements of W bytes into a block whose other lanes repeat the first: no division by zero or slow path that the
// data does not ask for. They are at most 15, for which a compiler's vectors cost more than they save.
template <class W>
void fill_block(const char* from, int64_t rest, char* block) {
  W first;
  std::memcpy(&first, from, sizeof(W));
  for (int64_t l = 0; l < kBlock; ++l) std::memcpy(block + l * sizeof(W), &first, sizeof(W));
#ifdef __clang__
#pragma clang loop vectorize(disable) unroll(disable)
#endif
  for (int64_t l = 1; l < rest; ++l) std::memcpy(block + l * sizeof(W), from + l * sizeof(W), sizeof(W));
}

struct Wide {
  uint64_t half[2];
};

// f of the type that has so many bytes.
template <class F>
void by_width(int64_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      return f(Wide());
  }
}

inline void fill_block(const char* from, int64_t size, int64_t rest, char* block) {
  by_width(size, [&](auto w) { fill_block<decltype(w)>(from, rest, block); });
}

// `rows` values of `size` bytes, `apart` bytes from each other, each of them `count` times.
void spread(const char* from, int64_t apart, int64_t size, char* to, int64_t rows, int64_t count);

// Bytes that come again and again, of which the first ones are there.
inline void repeat(char* buffer, int64_t there, int64_t all) {
  for (int64_t n; there < all; there += n) {
    n = std::min(there, all - there);
    std::memcpy(buffer + there, buffer, size_t(n));
  }
}

// Whether no result lies where elements are read. By operand: where it begins and ends in memory.
inline bool apart(const char* const* begin, const char* const* end, int outputs, int count) {
  for (int o = 0; o < outputs; ++o)
    for (int i = 0; i < count; ++i)
      if (i != o && begin[o] < end[i] && begin[i] < end[o]) return false;
  return true;
}

}  // namespace strata::eager
