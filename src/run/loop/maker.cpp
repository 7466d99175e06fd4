#include "run/loop/maker.h"

#include <cstring>

namespace strata::eager {

// Not null, so that strides may be added to it.
char* made_base() { return reinterpret_cast<char*>(uintptr_t(1) << 32); }

void make_elements(const Maker& maker, const char* at, int64_t stride, int64_t width, char* to, int64_t to_stride,
                   int64_t count) {
  const int64_t first = int64_t(reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(made_base())) / width;
  if (stride == width && to_stride == width) return maker.make(first, count, to);
  for (int64_t i = 0; i < count; ++i, to += to_stride) {
    alignas(16) char one[16];
    maker.make(first + i * (stride / width), 1, one);
    std::memcpy(to, one, size_t(width));
  }
}

}  // namespace strata::eager
