#include "run/loop/words.h"

#include <cstring>

namespace strata::eager {

// Not null, so that strides may be added to it.
char* words_base() { return reinterpret_cast<char*>(uintptr_t(1) << 32); }

void make_words(PhiloxState state, const char* at, int64_t stride, int64_t width, char* to, int64_t to_stride,
                int64_t count) {
  const int64_t each = width / 4;
  int64_t first = int64_t(reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(words_base())) / 4;
  if (stride == width && to_stride == width)
    return philox_words(state, first, count * each, reinterpret_cast<uint32_t*>(to));
  for (int64_t i = 0; i < count; ++i, first += stride / 4, to += to_stride) {
    uint32_t word[2];
    philox_words(state, first, each, word);
    std::memcpy(to, word, size_t(width));
  }
}

}  // namespace strata::eager
