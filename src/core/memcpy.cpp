// What the library calls as memcpy (CMakeLists.txt wraps it): copies by hand, and those that compilers make of loops.
//
// From about two kilobytes on, C libraries copy by `rep movsb` where the processor says that this is fast. On AMD's Zen
// 3 and 4 it goes byte after byte where the destination lies less than 32 bytes behind the source, pages aside: 3.5
// GB/s instead of 35, until glibc 2.39 (its bug 30994). Large blocks begin at pages, so what moves a row by some
// elements (roll, slices, cat, pad) comes there. From a megabyte on libraries have other ways.
#include <cstddef>
#include <cstdint>

extern "C" {

void* __real_memcpy(void* to, const void* from, size_t bytes);

__attribute__((visibility("hidden"))) void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  constexpr size_t kByBytes = 2048, kOtherWays = size_t(1) << 20, kPage = 4096, kBehind = 32;
  const size_t behind = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  if (bytes < kByBytes || bytes >= kOtherWays || behind == 0 || behind >= kBehind)
    return __real_memcpy(to, from, bytes);
  typedef char Piece __attribute__((vector_size(16), aligned(1), may_alias));
  Piece* t = static_cast<Piece*>(to);
  const Piece* f = static_cast<const Piece*>(from);
  const size_t rest = bytes % 128;
  // Eight are read before one is written: a store holds up reads from places that are a page apart.
  for (const Piece* end = f + (bytes - rest) / 16; f != end; f += 8, t += 8) {
    const Piece a = f[0], b = f[1], c = f[2], d = f[3], g = f[4], h = f[5], i = f[6], j = f[7];
    t[0] = a, t[1] = b, t[2] = c, t[3] = d, t[4] = g, t[5] = h, t[6] = i, t[7] = j;
  }
  __real_memcpy(t, f, rest);
  return to;
}

}  // extern "C"
