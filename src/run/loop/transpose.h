// Transposes in memory, in squares of one register a side.
#pragma once
#include <cstdint>

namespace strata::eager {

// dst[c][r] = src[r][c] for elements of `width` bytes (1, 2, 4, 8 or 16) that follow each other within a row of src and
// within a row of dst; the strides, in bytes, are from row to row.
void transpose(int64_t width, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
               int64_t columns);
// The same where the result lies in a small buffer, in whose sets of the cache its rows have room as they are.
void transpose_near(int64_t width, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                    int64_t columns);

}  // namespace strata::eager
