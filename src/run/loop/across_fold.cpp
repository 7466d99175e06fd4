#include "run/loop/across_fold.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "core/dtype.h"
#include "run/isa.h"
#include "run/loop/rows_join.h"

namespace strata::eager {

namespace {

constexpr int64_t kGroup = 16;

class Tree {
 public:
  Tree(const Joiner& joiner, int64_t row, int64_t wide, char* room)
      : joiner_(joiner), row_(row), wide_(wide), room_(room) {}

  // Positions by bit 4 and up, then by bits 3 to 0; where they come from only the first step asks.
  const char* fold(const char* runs, int64_t step, int64_t n) {
    if (n > kGroup) {
      const int64_t groups = (n + kGroup - 1) / kGroup;
      for (int64_t k = 0; k < groups; k += 2) pair(runs, step, k * kGroup, kGroup, kGroup, n);
      for (int64_t h = 2; h < groups; h *= 2)
        for (int64_t k = 0; k + h < groups; k += 2 * h) {
          char* a = room_ + k * kGroup * row_;
          joiner_.join(a, a, a + h * kGroup * row_, std::min(kGroup, n - (k + h) * kGroup) * wide_);
        }
      runs = room_;
      step = row_;
      n = kGroup;
    }
    if (n == kGroup && runs == room_) {
      joiner_.lanes(room_, wide_);
      return room_;
    }
    for (int64_t h = kGroup / 2; h > 0; h /= 2) {
      if (n <= h) continue;
      pair(runs, step, 0, h, h, n);
      runs = room_;
      step = row_;
      n = h;
    }
    return runs;
  }

 private:
  // Of `n` runs, those from `first` on join the ones `apart` later, as far as there are such; `count` become.
  void pair(const char* runs, int64_t step, int64_t first, int64_t count, int64_t apart, int64_t n) {
    const int64_t joined = std::clamp<int64_t>(n - first - apart, 0, count), left = std::min(count, n - first) - joined;
    const char* from = runs + first * step;
    char* to = room_ + first * row_;
    if (step == row_) {
      if (joined > 0) joiner_.join(to, from, from + apart * step, joined * wide_);
      if (to != from && left > 0) std::memcpy(to + joined * row_, from + joined * step, size_t(left * row_));
      return;
    }
    for (int64_t i = 0; i < joined; ++i) joiner_.join(to + i * row_, from + i * step, from + (i + apart) * step, wide_);
    for (int64_t i = joined; i < joined + left; ++i) std::memcpy(to + i * row_, from + i * step, size_t(row_));
  }

  const Joiner& joiner_;
  int64_t row_, wide_;
  char* room_;
};

// The first of equals, and the first NaN: of `wide` columns, which registers hold. Places are as wide as elements, and
// at least 16 bits, so that lanes are alike.
template <class T, bool largest, int64_t wide>
[[gnu::always_inline]] inline void first_of(const char* runs, int64_t step, int64_t n, T* best_of, int64_t* places) {
  using At = std::conditional_t<sizeof(T) <= 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  T best[wide];
  At at[wide] = {};
  std::memcpy(best, runs, sizeof best);
  for (int64_t p = 1; p < n; ++p) {
    const T* v = reinterpret_cast<const T*>(runs + p * step);
    for (int64_t i = 0; i < wide; ++i) {
      const T a = best[i], b = v[i];
      const bool better = (largest ? b > a : b < a) | ((b != b) & (a == a));
      best[i] = better ? b : a;
      at[i] = better ? At(p) : at[i];
    }
  }
  std::memcpy(best_of, best, sizeof best);
  for (int64_t i = 0; i < wide; ++i) places[i] = at[i];
}

template <class T, bool largest, int64_t kTogether>
[[gnu::always_inline]] inline void first_of(const char* runs, int64_t step, int64_t n, int64_t wide, char* to,
                                            char* places) {
  T* best = reinterpret_cast<T*>(to);
  int64_t* at = reinterpret_cast<int64_t*>(places);
  int64_t i = 0;
  for (; i + kTogether <= wide; i += kTogether)
    first_of<T, largest, kTogether>(runs + i * int64_t(sizeof(T)), step, n, best + i, at + i);
  for (; i < wide; ++i) first_of<T, largest, 1>(runs + i * int64_t(sizeof(T)), step, n, best + i, at + i);
}

using FirstFn = void (*)(const char*, int64_t, int64_t, int64_t, char*, char*);

template <class T, bool largest>
void first(const char* runs, int64_t step, int64_t n, int64_t wide, char* to, char* places) {
  first_of<T, largest, 8>(runs, step, n, wide, to, places);
}
template <class T, bool largest>
[[gnu::target("avx2")]] void first_wide(const char* runs, int64_t step, int64_t n, int64_t wide, char* to,
                                        char* places) {
  first_of<T, largest, sizeof(T) <= 2 ? 64 : 128 / sizeof(T)>(runs, step, n, wide, to, places);
}

template <class T>
FirstFn first_fn(bool largest) {
  if (current_isa() > 0) return largest ? first_wide<T, true> : first_wide<T, false>;
  return largest ? first<T, true> : first<T, false>;
}

FirstFn first_fn(const StrataReduction& how) {
  const bool largest = how.combine == STRATA_COMBINE_ARGMAX;
  switch (static_cast<DType>(how.accumulator)) {
    case DType::F32:
      return first_fn<float>(largest);
    case DType::F64:
      return first_fn<double>(largest);
    case DType::I8:
      return first_fn<int8_t>(largest);
    case DType::Bool:
    case DType::U8:
      return first_fn<uint8_t>(largest);
    case DType::I16:
      return first_fn<int16_t>(largest);
    case DType::U16:
      return first_fn<uint16_t>(largest);
    case DType::I32:
      return first_fn<int32_t>(largest);
    case DType::U32:
      return first_fn<uint32_t>(largest);
    case DType::I64:
      return first_fn<int64_t>(largest);
    default:
      STRATA_INTERNAL(static_cast<DType>(how.accumulator) == DType::U64, "accumulators that are not compared by runs");
      return first_fn<uint64_t>(largest);
  }
}

}  // namespace

void fold_columns(const StrataReduction& how, const char* runs, int64_t step, int64_t n, int64_t wide, char* room,
                  char* to, char* places) {
  if (how.combine >= STRATA_COMBINE_ARGMAX) return first_fn(how)(runs, step, n, wide, to, places);
  const int64_t row = wide * itemsize(static_cast<DType>(how.accumulator));
  const Joiner joiner = joiner_of(how);
  std::memcpy(to, Tree(joiner, row, wide, room).fold(runs, step, n), size_t(row));
}

}  // namespace strata::eager
