// Elements and rows of elements that are moved as they are.
#include <algorithm>
#include <bit>
#include <cstring>

#include "run/isa.h"
#include "run/loop/blocks.h"
#include "run/loop/cast.h"

namespace strata::eager {

namespace {

struct W16 {
  uint64_t a, b;
};

// Rows of n elements, each from the last to the first: register by register, the last of which may overlap.
template <class T>
[[gnu::always_inline]] inline void reverse_all(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n,
                                               int64_t rows) {
  constexpr int64_t lanes = 32 / sizeof(T);
  for (; rows > 0; --rows, src += ss, dst += ds) {
    const T* s = reinterpret_cast<const T*>(src);
    T* d = reinterpret_cast<T*>(dst);
    for (int64_t i = 0; i < n && n < lanes; ++i) d[i] = s[-i];
    for (int64_t i = 0; i < n && n >= lanes; i += lanes) {
      const int64_t at = std::min(i, n - lanes);
      T there[lanes], turned[lanes];
      std::memcpy(there, s - at - (lanes - 1), sizeof there);
      for (int64_t l = 0; l < lanes; ++l) turned[l] = there[lanes - 1 - l];
      std::memcpy(d + at, turned, sizeof turned);
    }
  }
}
template <class T>
[[gnu::target("avx2")]] void reverse_wide(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n, int64_t rows) {
  reverse_all<T>(src, ss, dst, ds, n, rows);
}
template <class T>
void reverse(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n, int64_t rows) {
  current_isa() > 0 ? reverse_wide<T>(src, ss, dst, ds, n, rows) : reverse_all<T>(src, ss, dst, ds, n, rows);
}

// Every other element of 4 or 8 bytes, register by register: how many are done. None reaches beyond the last element.
template <class T>
[[gnu::target("avx2")]] int64_t every_other(const char* src, char* dst, int64_t n) {
  using Register [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = T;
  constexpr int64_t lanes = 32 / sizeof(T);
  int64_t i = 0;
  for (; i + lanes < n; i += lanes, src += 64, dst += 32) {
    const Register a = *reinterpret_cast<const Register*>(src), b = *reinterpret_cast<const Register*>(src + 32);
    if constexpr (lanes == 8)
      *reinterpret_cast<Register*>(dst) = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    else
      *reinterpret_cast<Register*>(dst) = __builtin_shufflevector(a, b, 0, 2, 4, 6);
  }
  return i;
}

template <class T>
void move_run(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  constexpr int64_t w = sizeof(T);
  if (ss == w && ds == w) {
    std::memcpy(dst, src, size_t(n * w));
    return;
  }
  if (ds == w) {
    T* d = reinterpret_cast<T*>(dst);
    if (ss == 0) {
      T v = *reinterpret_cast<const T*>(src);
      for (int64_t i = 0; i < n; ++i) d[i] = v;
      return;
    }
    if (ss == -w) return reverse<T>(src, 0, dst, 0, n, 1);
    int64_t i = 0;
    if constexpr (w == 4 || w == 8)
      if (ss == 2 * w && current_isa() > 0) i = every_other<T>(src, dst, n), src += i * ss;
    for (; i < n; ++i, src += ss) d[i] = *reinterpret_cast<const T*>(src);
    return;
  }
  for (int64_t i = 0; i < n; ++i, src += ss, dst += ds) *reinterpret_cast<T*>(dst) = *reinterpret_cast<const T*>(src);
}

template <class W>
void spread_run(const char* from, int64_t apart, char* to, int64_t rows, int64_t count) {
  for (W *d = reinterpret_cast<W*>(to), w; rows-- > 0; from += apart, d += count) {
    std::memcpy(&w, from, sizeof(W));
    std::fill_n(d, count, w);
  }
}
// In whole registers, the last of which reaches into the next rows, as long as these have room for it.
template <class W>
[[gnu::target("avx2")]] void spread_wide(const char* from, int64_t apart, char* to, int64_t rows, int64_t count) {
  using Register [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = W;
  constexpr int64_t lanes = 32 / sizeof(W);
  const int64_t over = (count + lanes - 1) / lanes * lanes;
  for (W w; rows > 0 && rows * count >= over; --rows, from += apart, to += count * int64_t(sizeof(W))) {
    std::memcpy(&w, from, sizeof(W));
    const Register all = w - Register{};
    for (int64_t i = 0; i < count; i += lanes) *reinterpret_cast<Register*>(to + i * int64_t(sizeof(W))) = all;
  }
  spread_run<W>(from, apart, to, rows, count);
}

// Of each row the first `many` pieces and the last `many`, which may overlap those.
template <class T, int many>
void move_ends(int64_t bytes, const char* src, int64_t ss, char* dst, int64_t ds, int64_t rows) {
  const int64_t back = bytes - int64_t(many * sizeof(T));
  for (; rows > 0; --rows, src += ss, dst += ds) {
    T first[many], last[many];
    std::memcpy(first, src, sizeof first);
    std::memcpy(last, src + back, sizeof last);
    std::memcpy(dst, first, sizeof first);
    std::memcpy(dst + back, last, sizeof last);
  }
}

// The same in pieces of 64 bytes, for rows that a call for each would take longer to begin than to move.
void move_pieces(int64_t bytes, const char* src, int64_t ss, char* dst, int64_t ds, int64_t rows) {
  constexpr int64_t kPiece = 64;
  const int64_t back = bytes - kPiece;
  for (; rows > 0; --rows, src += ss, dst += ds) {
    for (int64_t at = 0; at < back; at += kPiece) std::memcpy(dst + at, src + at, kPiece);
    std::memcpy(dst + back, src + back, kPiece);
  }
}

}  // namespace

CastFn move_fn(int64_t width) {
  switch (width) {
    case 1:
      return move_run<uint8_t>;
    case 2:
      return move_run<uint16_t>;
    case 4:
      return move_run<uint32_t>;
    case 8:
      return move_run<uint64_t>;
    default:
      return move_run<W16>;
  }
}

void spread(const char* from, int64_t apart, int64_t size, char* to, int64_t rows, int64_t count) {
  const bool wide = current_isa() > 0;
  switch (size) {
    case 1:
      return (wide ? spread_wide<uint8_t> : spread_run<uint8_t>)(from, apart, to, rows, count);
    case 2:
      return (wide ? spread_wide<uint16_t> : spread_run<uint16_t>)(from, apart, to, rows, count);
    case 4:
      return (wide ? spread_wide<uint32_t> : spread_run<uint32_t>)(from, apart, to, rows, count);
    case 8:
      return (wide ? spread_wide<uint64_t> : spread_run<uint64_t>)(from, apart, to, rows, count);
    default:
      return spread_run<W16>(from, apart, to, rows, count);
  }
}

void reverse_rows(int64_t width, int64_t n, const char* src, int64_t ss, char* dst, int64_t ds, int64_t rows) {
  (width == 1   ? reverse<uint8_t>
   : width == 2 ? reverse<uint16_t>
   : width == 4 ? reverse<uint32_t>
   : width == 8 ? reverse<uint64_t>
                : reverse<W16>)(src, ss, dst, ds, n, rows);
}

void move_rows(int64_t bytes, const char* src, int64_t ss, char* dst, int64_t ds, int64_t rows) {
  if (bytes <= 16 && std::has_single_bit(uint64_t(bytes))) return move_fn(bytes)(src, ss, dst, ds, rows);
  const auto move = bytes <= 3    ? move_ends<uint16_t, 1>
                    : bytes < 8   ? move_ends<uint32_t, 1>
                    : bytes < 16  ? move_ends<uint64_t, 1>
                    : bytes <= 32 ? move_ends<W16, 1>
                    : bytes <= 64 ? move_ends<W16, 2>
                                  : move_ends<W16, 4>;
  if (bytes > 0 && bytes <= 128) return move(bytes, src, ss, dst, ds, rows);
  if (bytes > 128 && bytes <= 1024) return move_pieces(bytes, src, ss, dst, ds, rows);
  for (; rows > 0; --rows, src += ss, dst += ds) std::memcpy(dst, src, size_t(bytes));
}

}  // namespace strata::eager
