#include "lower/print/helpers.h"

namespace strata::lower {

const char* const kRowEnds =
    R"C(// What a row has behind its last whole vector, by the bits of an element: masks where there are some. (AVX2's stores
// under masks are slower than one element after the other.)
#if LANES == 16 && defined __AVX512BW__
#define MASKS
typedef char m8x16 __attribute__((vector_size(16)));
typedef short m16x16 __attribute__((vector_size(32)));
typedef int m32x16 __attribute__((vector_size(64)));
typedef long long m64x8 __attribute__((vector_size(64)));
typedef long long m64x16 __attribute__((vector_size(128)));
#define FIRST(n) ((1u << (n)) - 1)
#define ROW_BITS(n) __builtin_ia32_bzhi_di(~0ul, n)
#define HALF_OF(v, n) __builtin_shufflevector(v, v, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7)
#define THOSE_8(T, p, m) ((T)__builtin_ia32_loaddquqi128_mask((const void*)(p), (m8x16){0}, m))
#define THOSE_16(T, p, m) ((T)__builtin_ia32_loaddquhi256_mask((const void*)(p), (m16x16){0}, m))
#define THOSE_32(T, p, m) ((T)__builtin_ia32_loaddqusi512_mask((const void*)(p), (m32x16){0}, m))
#define THOSE_64(T, p, m) ((T)__builtin_shufflevector( \
    (m64x8)__builtin_ia32_loaddqudi512_mask((const void*)(p), (m64x8){0}, (m) & 255), \
    (m64x8)__builtin_ia32_loaddqudi512_mask((const void*)((p) + 8), (m64x8){0}, (m) >> 8 & 255), \
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define STORE_THOSE_8(p, v, m) __builtin_ia32_storedquqi128_mask((void*)(p), (m8x16)(v), m)
#define STORE_THOSE_16(p, v, m) __builtin_ia32_storedquhi256_mask((void*)(p), (m16x16)(v), m)
#define STORE_THOSE_32(p, v, m) __builtin_ia32_storedqusi512_mask((void*)(p), (m32x16)(v), m)
#define STORE_THOSE_64(p, v, m) do { \
    __builtin_ia32_storedqudi512_mask((void*)(p), HALF_OF((m64x16)(v), 0), (m) & 255); \
    __builtin_ia32_storedqudi512_mask((void*)((p) + 8), HALF_OF((m64x16)(v), 8), (m) >> 8 & 255); \
  } while (0)
#ifdef __clang__
#define PICK_8(T, m, a, b) ((T)__builtin_ia32_selectb_128(m, (m8x16)(a), (m8x16)(b)))
#define PICK_16(T, m, a, b) ((T)__builtin_ia32_selectw_256(m, (m16x16)(a), (m16x16)(b)))
#define PICK_32(T, m, a, b) ((T)__builtin_ia32_selectd_512(m, (m32x16)(a), (m32x16)(b)))
#else
#define PICK_8(T, m, a, b) ((T)__builtin_ia32_blendmb_128_mask((m8x16)(b), (m8x16)(a), m))
#define PICK_16(T, m, a, b) ((T)__builtin_ia32_blendmw_256_mask((m16x16)(b), (m16x16)(a), m))
#define PICK_32(T, m, a, b) ((T)__builtin_ia32_blendmd_512_mask((m32x16)(b), (m32x16)(a), m))
#endif
#elif LANES == 16 && defined __AVX2__
typedef int m32x8 __attribute__((vector_size(32)));
typedef long long m64x4 __attribute__((vector_size(32)));
#define FIRST_32(n, a) ((m32x8){a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7} < (int)(n))
#define FIRST_64(n, a) ((m64x4){a, a + 1, a + 2, a + 3} < (long long)(n))
#define PART_32(T, p, n) ((T)__builtin_shufflevector( \
    (m32x8)__builtin_ia32_maskloadd256((const void*)(p), FIRST_32(n, 0)), \
    (m32x8)__builtin_ia32_maskloadd256((const void*)((p) + 8), FIRST_32(n, 8)), \
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define QUARTER_OF(p, n, a) (m64x4)__builtin_ia32_maskloadq256((const void*)((p) + a), FIRST_64(n, a))
#define TWO_QUARTERS(p, n, a) __builtin_shufflevector(QUARTER_OF(p, n, a), QUARTER_OF(p, n, a + 4), 0, 1, 2, 3, 4, 5, 6, 7)
#define PART_64(T, p, n) ((T)__builtin_shufflevector(TWO_QUARTERS(p, n, 0), TWO_QUARTERS(p, n, 8), \
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#endif
)C";

}  // namespace strata::lower
