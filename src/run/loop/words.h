// Words of a random stream as an operand of a loop: one that lies nowhere and is made where it would be gathered. In the
// place of addresses it has those that the words would have if they lay in row-major order from `words_base()` on;
// strides are bytes, as of any operand. Nothing is ever read there.
#pragma once
#include "core/generator.h"

namespace strata::eager {

char* words_base();
// `count` words of `width` bytes (4 or 8) at `at`, `stride` apart, into `to`, `to_stride` apart.
void make_words(PhiloxState state, const char* at, int64_t stride, int64_t width, char* to, int64_t to_stride,
                int64_t count);

}  // namespace strata::eager
