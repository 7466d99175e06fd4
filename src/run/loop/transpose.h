// Transposes in memory, in squares of one register a side.
#pragma once
#include <cstdint>

#include "run/loop/cast.h"

namespace strata::eager {

// dst[c][r] = src[r][c] for elements of `width` bytes (1, 2, 4, 8 or 16) that follow each other within a row of src and
// within a row of dst; the strides, in bytes, are from row to row.
void transpose(int64_t width, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
               int64_t columns);
// The same where the result lies in a small buffer, in whose sets of the cache its rows have room as they are.
void transpose_near(int64_t width, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                    int64_t columns);
// Converted on the way, to `width` bytes and rows without gaps: `wide` columns `step` bytes apart, whose `run` elements
// are nearer to each other, `apart` bytes. Taken column by column, some of them, and turned, since single elements so
// far apart as they go to would meet in one set of the cache.
void cast_turned(CastFn cast, int64_t width, const char* src, int64_t step, int64_t apart, char* dst, int64_t wide,
                 int64_t run);

}  // namespace strata::eager
