// Operands of a pointwise kernel whose neighbours in memory belong to different rows: of some rows a run of columns at
// a time is turned over in a buffer, where one row after the other would fetch a line of the cache for every element.
#include <algorithm>

#include "run/loop/blocks.h"
#include "run/loop/cast.h"
#include "run/loop/pointwise_loop.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int64_t kMostColumns = 256;                 // of a tile; more of a row are worth tiles
constexpr int64_t kLine = 64, kTileBytes = 16 << 10;  // of an operand

int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

}  // namespace

int64_t PointwiseLoop::count_tiles() {
  const size_t n = shape_.size();
  if (n < 2 || shape_[n - 1] <= kMostColumns || shape_[n - 2] < kBlock) return 0;
  const Operand* turned = std::find_if(operands_, operands_ + count_, [](const Operand& o) { return o.turned; });
  if (turned == operands_ + count_) return 0;
  tile_rows_ = std::max<int64_t>(8, kLine / itemsize(turned->kernel));
  tile_columns_ = std::min(kMostColumns, kTileBytes / (tile_rows_ * widest_));
  int64_t outer = 1;
  for (size_t d = 0; d + 2 < n; ++d) outer *= shape_[d];
  return outer * pieces(shape_[n - 2], tile_rows_) * pieces(shape_[n - 1], tile_columns_);
}

void PointwiseLoop::run_tiles(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end,
                              int32_t* status) const {
  alignas(64) char buffer[kMaxOperands][kTileBytes];
  const size_t last = shape_.size() - 1;
  const int64_t columns = tile_columns_, across = pieces(shape_[last], columns),
                down = pieces(shape_[last - 1], tile_rows_);
  int64_t size[kMaxOperands], step[kMaxOperands];
  for (int i = 0; i < count_; ++i) {
    const Operand& o = operands_[i];
    size[i] = itemsize(o.kernel);
    step[i] = !o.output && o.strides[last] == 0 ? 0 : size[i] * kBlock;
    if (o.constant) take(o, o.base, 0, buffer[i], kBlock);
  }
  for (; begin < end; ++begin) {
    const int64_t column = begin % across * columns, row = begin / across % down * tile_rows_;
    const int64_t wide = std::min(columns, shape_[last] - column), rows = std::min(tile_rows_, shape_[last - 1] - row);
    char *place[kMaxOperands], *ptr[kMaxOperands];
    int64_t jump[kMaxOperands];
    bool direct[kMaxOperands];
    for (int i = 0; i < count_; ++i) {
      const Operand& o = operands_[i];
      const int64_t apart = o.strides[last - 1], stride = o.strides[last],
                    pitch = step[i] ? columns * size[i] : kBlock * size[i];
      char* p = o.base + column * stride + row * apart;
      int64_t rest = begin / across / down;
      for (size_t d = last - 1; d-- > 0; rest /= shape_[d]) p += rest % shape_[d] * o.strides[d];
      place[i] = p;
      direct[i] = o.dtype == o.kernel && !o.maker && stride == size[i];
      ptr[i] = direct[i] ? p : buffer[i];
      jump[i] = direct[i] ? apart : o.constant ? 0 : pitch;
      if (direct[i] || o.constant || o.output) continue;
      if (o.turned)
        transpose_near(size[i], p, stride, buffer[i], pitch, wide, rows);
      else
        for (int64_t r = 0; r < rows; ++r)
          take(o, p + r * apart, stride, buffer[i] + r * pitch, step[i] ? wide : kBlock);
    }
    for (int64_t r = 0; r < rows; ++r) {
      run_span(fn, ptr, size, step, outputs_, count_, params, wide, 0, again_, status);
      for (int i = 0; i < count_; ++i) ptr[i] += jump[i];
    }
    for (int i = 0; i < outputs_; ++i) {
      const Operand& o = operands_[i];
      const int64_t pitch = columns * size[i];
      if (direct[i]) continue;
      if (o.turned)
        transpose(size[i], buffer[i], pitch, place[i], o.strides[last], rows, wide);
      else
        for (int64_t r = 0; r < rows; ++r)
          cast_fn(o.kernel, o.dtype)(buffer[i] + r * pitch, size[i], place[i] + r * o.strides[last - 1],
                                     o.strides[last], wide);
    }
  }
}

}  // namespace strata::eager
