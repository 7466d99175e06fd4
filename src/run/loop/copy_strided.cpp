#include "run/loop/copy_strided.h"

#include <algorithm>
#include <cstdlib>

#include "core/parallel.h"
#include "run/loop/cast.h"
#include "run/loop/contiguous.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

struct CopyDims {
  DimVec sizes, dst, src;  // strides in bytes
};

CopyDims copy_dims(const DimVec& from, const DimVec& to, IntArrayRef sizes) {
  CopyDims c;
  SmallVec<int64_t, 8> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(int64_t(d));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t x = to[size_t(a)], y = to[size_t(b)];
    return x != y ? x > y : a < b;
  });
  for (int64_t i : order) {
    const size_t d = size_t(i), k = c.sizes.size();
    const int64_t ds = to[d], ss = from[d];
    if (ds == 0 && ss == 0) continue;  // one element into one place: once is enough
    if (k && c.dst[k - 1] == ds * sizes[d] && c.src[k - 1] == ss * sizes[d]) {
      c.sizes[k - 1] *= sizes[d];
      c.dst[k - 1] = ds;
      c.src[k - 1] = ss;
    } else {
      c.sizes.push_back(sizes[d]);
      c.dst.push_back(ds);
      c.src.push_back(ss);
    }
  }
  if (c.sizes.empty()) {
    c.sizes.push_back(1);
    c.dst.push_back(0);
    c.src.push_back(0);
  }
  return c;
}

// A transposed copy in squares that stay in the cache. `width`: of elements to be moved as they are, or 0.
void copy_square(CastFn cast, int64_t width, const CopyDims& c, char* dst, const char* src, int64_t begin,
                 int64_t end) {
  size_t n = c.sizes.size();
  const int64_t inner = c.sizes[n - 1];
  const bool plain = width > 0 && c.src[n - 2] == width && c.dst[n - 1] == width;
  const int64_t side = plain && width <= 4 ? 64 : 32;
  for (int64_t i = begin; i < end; i += side)
    for (int64_t j = 0; j < inner; j += side)
      if (plain)
        transpose(width, src + i * width + j * c.src[n - 1], c.src[n - 1], dst + i * c.dst[n - 2] + j * width,
                  c.dst[n - 2], std::min(side, inner - j), std::min(side, end - i));
      else
        for (int64_t r = i; r < std::min(i + side, end); ++r)
          cast(src + r * c.src[n - 2] + j * c.src[n - 1], c.src[n - 1], dst + r * c.dst[n - 2] + j * c.dst[n - 1],
               c.dst[n - 1], std::min(side, inner - j));
}

constexpr int64_t kShortRow = 8;  // elements, to which a call for each row costs more than what it does
constexpr int64_t kRows = 256;    // that are copied together

// `rows` short rows, column by column.
void copy_columns(CastFn cast, const CopyDims& c, char* dst, const char* src, int64_t rows) {
  const size_t n = c.sizes.size();
  for (int64_t k = 0; k < c.sizes[n - 1]; ++k)
    cast(src + k * c.src[n - 1], c.src[n - 2], dst + k * c.dst[n - 1], c.dst[n - 2], rows);
}

}  // namespace

void copy_strided(DType src, const char* s, const DimVec& from, DType dst, char* d, const DimVec& to,
                  IntArrayRef sizes) {
  CastFn cast = cast_fn(src, dst);
  CopyDims c = copy_dims(from, to, sizes);
  size_t n = c.sizes.size();
  int64_t inner = c.sizes[n - 1], outer = 1;
  for (size_t i = 0; i + 1 < n; ++i) outer *= c.sizes[i];
  if (outer == 1) {
    const int64_t width = src == dst && c.src[0] == c.dst[0] && c.dst[0] == itemsize(dst) ? c.dst[0] : 0;
    if (inner * width > cached_bytes(true)) {
      parallel_for(0, inner * width, kPointwiseGrain * width,
                   [&](int64_t b, int64_t e) { copy_streamed(d + b, s + b, e - b); });
      return;
    }
    parallel_for(0, inner, kPointwiseGrain, [&](int64_t b, int64_t e) {
      cast(s + b * c.src[n - 1], c.src[n - 1], d + b * c.dst[n - 1], c.dst[n - 1], e - b);
    });
    return;
  }
  const bool same = src == dst;
  const int64_t near = std::abs(c.src[n - 2]);
  const bool square =
      near <= 16 && c.sizes[n - 2] >= 8 && inner >= 8 && std::abs(c.src[n - 1]) > (same ? near : int64_t(64));
  if (square && c.src[n - 2] < 0) {  // squares are read forwards
    s += (c.sizes[n - 2] - 1) * c.src[n - 2];
    d += (c.sizes[n - 2] - 1) * c.dst[n - 2];
    c.src[n - 2] = -c.src[n - 2];
    c.dst[n - 2] = -c.dst[n - 2];
  }
  int64_t rows = square ? c.sizes[n - 2] : 1, blocks = outer / rows;
  auto offsets = [&](int64_t index, size_t dims, int64_t* ds, int64_t* ss) {
    *ds = *ss = 0;
    for (size_t k = dims; k-- > 0;) {
      *ds += index % c.sizes[k] * c.dst[k];
      *ss += index % c.sizes[k] * c.src[k];
      index /= c.sizes[k];
    }
  };
  if (square) {
    const int64_t width = same ? itemsize(src) : 0;
    int64_t grain = std::max<int64_t>(64, kPointwiseGrain / std::max<int64_t>(inner, 1));
    int64_t per_block = (rows + grain - 1) / grain;
    parallel_for(0, blocks * per_block, 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t ds, ss;
        offsets(i / per_block, n - 2, &ds, &ss);
        int64_t first = i % per_block * grain;
        copy_square(cast, width, c, d + ds, s + ss, first, std::min(first + grain, rows));
      }
    });
    return;
  }
  int64_t grain = std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(inner, 1));
  const int64_t width = itemsize(dst), many = c.sizes[n - 2];
  const bool whole = same && c.src[n - 1] == width && c.dst[n - 1] == width;
  const bool back = same && c.src[n - 1] == -width && c.dst[n - 1] == width;
  const bool across = !back && inner <= kShortRow && many >= kShortRow;
  parallel_for(0, outer, grain, [&](int64_t b, int64_t e) {
    while (b < e) {
      const int64_t at = b % many, count = whole ? std::min(e - b, many - at) : std::min({e - b, many - at, kRows});
      int64_t ds, ss;
      offsets(b, n - 1, &ds, &ss);
      if (whole) {
        move_rows(inner * width, s + ss, c.src[n - 2], d + ds, c.dst[n - 2], count);
      } else if (back) {
        reverse_rows(width, inner, s + ss, c.src[n - 2], d + ds, c.dst[n - 2], count);
      } else if (across) {
        copy_columns(cast, c, d + ds, s + ss, count);
      } else {
        for (int64_t i = 0; i < count; ++i)
          cast(s + ss + i * c.src[n - 2], c.src[n - 1], d + ds + i * c.dst[n - 2], c.dst[n - 1], inner);
      }
      b += count;
    }
  });
}

}  // namespace strata::eager
