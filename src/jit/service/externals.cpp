// Memory, and those of mathematics that have one right result, which every C library gives: the bits of kernels do not
// depend on it.
#include "jit/service/externals.h"

#include <emmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace strata::jit {

namespace {

struct External {
  std::string_view name;
  void* address;
};
using F = float (*)(float);
using D = double (*)(double);
template <class T>
void* of(T f) {
  return reinterpret_cast<void*>(f);
}

// What GCC calls to compare two float16, which lie at the begin of these registers: 0 where they are equal.
int halves_differ(__m128i a, __m128i b) {
  const int x = _mm_extract_epi16(a, 0), y = _mm_extract_epi16(b, 0), magnitude = 0x7fff, infinity = 0x7c00;
  const bool is_nan = (x & magnitude) > infinity || (y & magnitude) > infinity;
  return is_nan || (x != y && ((x | y) & magnitude) != 0);
}

// Sorted by name.
const External table[] = {
    {"__eqhf2", of(halves_differ)},
    {"__nehf2", of(halves_differ)},
    {"ceil", of<D>(::ceil)},
    {"ceilf", of<F>(::ceilf)},
    {"fabs", of<D>(::fabs)},
    {"fabsf", of<F>(::fabsf)},
    {"floor", of<D>(::floor)},
    {"floorf", of<F>(::floorf)},
    {"fma", of<double (*)(double, double, double)>(::fma)},
    {"fmaf", of<float (*)(float, float, float)>(::fmaf)},
    {"memcpy", of(::memcpy)},
    {"memmove", of(::memmove)},
    {"memset", of(::memset)},
    {"nearbyint", of<D>(::nearbyint)},
    {"nearbyintf", of<F>(::nearbyintf)},
    {"rint", of<D>(::rint)},
    {"rintf", of<F>(::rintf)},
    {"sqrt", of<D>(::sqrt)},
    {"sqrtf", of<F>(::sqrtf)},
    {"trunc", of<D>(::trunc)},
    {"truncf", of<F>(::truncf)},
};

}  // namespace

void* external(std::string_view name) {
  const External* at = std::lower_bound(std::begin(table), std::end(table), name,
                                        [](const External& e, std::string_view n) { return e.name < n; });
  return at != std::end(table) && at->name == name ? at->address : nullptr;
}

}  // namespace strata::jit
