#include "run/loop/extremum.h"

#include <cstring>

#include "run/isa.h"

namespace strata::eager {

namespace {

template <class T, bool is_largest>
[[gnu::target("avx2")]] void extremum(const char* from, int64_t n, char* value) {
  const T* v = reinterpret_cast<const T*>(from);
  T best = v[0];
  for (int64_t i = 1; i < n; ++i) best = (is_largest ? v[i] > best : v[i] < best) ? v[i] : best;
  std::memcpy(value, &best, sizeof best);
}

template <class T>
[[gnu::target("avx2")]] int64_t place(const char* from, int64_t n, const char* value) {
  constexpr int64_t kTogether = 256 / sizeof(T);
  const T* v = reinterpret_cast<const T*>(from);
  T wanted;
  std::memcpy(&wanted, value, sizeof wanted);
  int64_t i = 0;
  for (bool found = false; i + kTogether <= n; i += kTogether) {
    for (int64_t k = 0; k < kTogether; ++k) found |= v[i + k] == wanted;
    if (found) break;
  }
  while (v[i] != wanted) ++i;
  return i;
}

}  // namespace

Extrema::Extrema(const StrataKernelEntry& entry, DType input) {
  const StrataRowPass& pass = entry.pass[0];
  if (!pass.plain || current_isa() == 0) return;
  for (int r = 0; r < pass.reductions; ++r)
    if (const uint8_t how = entry.reduction[r].combine; how < STRATA_COMBINE_MAX || how == STRATA_COMBINE_OR ||
                                                        how == STRATA_COMBINE_AND ||
                                                        static_cast<DType>(entry.reduction[r].accumulator) != input)
      return;
  const auto use = [&]<class T>(T) {
    largest_ = extremum<T, true>;
    smallest_ = extremum<T, false>;
    place_ = place<T>;
  };
  switch (input) {
    case DType::U8:
      use(uint8_t());
      break;
    case DType::I8:
      use(int8_t());
      break;
    case DType::U16:
      use(uint16_t());
      break;
    case DType::I16:
      use(int16_t());
      break;
    case DType::U32:
      use(uint32_t());
      break;
    case DType::I32:
      use(int32_t());
      break;
    default:
      return;
  }
  reductions_ = entry.reduction;
  count_ = pass.reductions;
  width_ = itemsize(input);
}

void Extrema::run(const StrataRowArgs& args, const char* from) const {
  constexpr int64_t kSlot = 16;
  char* slot = static_cast<char*>(args.partial);
  bool known = false, known_largest = false;
  for (int r = 0; r < count_; ++r, slot += kSlot) {
    const uint8_t how = reductions_[r].combine;
    const bool is_largest = how == STRATA_COMBINE_MAX || how == STRATA_COMBINE_ARGMAX;
    if (known && known_largest == is_largest)
      std::memcpy(slot, slot - kSlot, size_t(width_));
    else
      (is_largest ? largest_ : smallest_)(from, args.count, slot);
    known = true;
    known_largest = is_largest;
    if (how < STRATA_COMBINE_ARGMAX) continue;
    const int64_t at = args.first + place_(from, args.count, slot);
    std::memcpy(slot + kSlot / 2, &at, sizeof at);
  }
}

}  // namespace strata::eager
