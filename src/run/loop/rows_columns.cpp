#include "run/loop/rows_columns.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "run/loop/cast.h"
#include "run/loop/rows_fold.h"

namespace strata::eager {

namespace {

constexpr int64_t kTileBytes = 4096;      // of accumulators, side by side: 112 such rows stay in the second-level cache
constexpr int64_t kExtremumBytes = 1024;  // 16 such rows stay in the first-level cache
constexpr int64_t kBlock = 16;            // columns that a kernel takes at a time; fewer are not worth it

class Columns {
 public:
  explicit Columns(const RowsLoop& l) : l_(l), e_(*l.entry) {}

  bool fit() {
    if (e_.passes != 2 || !e_.pass[0].columns || l_.kept_sizes.empty() || l_.reduced_sizes.size() != 1) return false;
    n_ = l_.reduced_sizes[0];
    inner_ = l_.kept_sizes.back();
    for (size_t d = 0; d + 1 < l_.kept_sizes.size(); ++d) outer_ *= l_.kept_sizes[d];
    if (n_ < 2 || inner_ < kBlock || outer_ == 0) return false;
    for (size_t i = e_.outputs; i < l_.operands.size(); ++i) {
      const RowOperand& o = l_.operands[i];
      if (o.per_row || o.maker || o.dtype != o.kernel || o.kept.back() != itemsize(o.kernel)) return false;
    }
    return true;
  }

  void run() {
    width_ = itemsize(static_cast<DType>(e_.reduction[0].accumulator));
    parts_ = (n_ + kPart - 1) / kPart;
    // Enough tiles for the threads, in whole blocks that the columns have.
    const int64_t wanted = std::max<int64_t>(1, num_threads() / (outer_ * parts_));
    const bool extremum = e_.reduction[0].combine > STRATA_COMBINE_MUL;
    tile_ = std::min({(extremum ? kExtremumBytes : kTileBytes) / width_, blocks((inner_ + wanted - 1) / wanted),
                      inner_ / kBlock * kBlock});
    tiles_ = (inner_ + tile_ - 1) / tile_;
    const int64_t columns = outer_ * inner_;
    if (parts_ > 1) partial_.resize(size_t(parts_ * columns * width_));
    const int64_t grain = std::max<int64_t>(1, 16384 / (std::min(n_, kPart) * tile_));
    parallel_for(0, outer_ * tiles_ * parts_, grain, [&](int64_t begin, int64_t end) {
      static thread_local Workspace space;
      const int64_t room = tile_ * width_;
      char* scratch = space.get(size_t(room * (STRATA_COLUMN_ROWS + 1)));
      char* made = scratch + room * STRATA_COLUMN_ROWS;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i % parts_, tile = i / parts_ % tiles_, row = i / parts_ / tiles_;
        const int64_t first = tile * tile_, count = std::min(tile_, inner_ - first);
        // The last block is whole too: it begins among the columns of the one before.
        const int64_t wide = blocks(count), begins = std::min(first, inner_ - wide);
        reduce(row, begins, wide, part, made, scratch);
        const char* own = made + (first - begins) * width_;
        if (parts_ == 1)
          finish(row, first, count, own);
        else
          std::memcpy(partial_.data() + (part * columns + row * inner_ + first) * width_, own, size_t(count * width_));
      }
    });
    if (parts_ == 1) return;
    std::vector<Value> values(static_cast<size_t>(parts_));
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t p = 0; p < parts_; ++p)
        std::memcpy(values[size_t(p)].bytes, partial_.data() + (p * columns + c) * width_, size_t(width_));
      const Value v = fold(e_.reduction[0], values.data(), parts_);
      finish(c / inner_, c % inner_, 1, v.bytes);
    }
  }

 private:
  static int64_t blocks(int64_t columns) { return (columns + kBlock - 1) / kBlock * kBlock; }

  char* at(const RowOperand& o, int64_t row, int64_t column) const {
    char* p = o.base + column * o.kept.back();
    for (size_t d = l_.kept_sizes.size() - 1; d-- > 0;) {
      p += row % l_.kept_sizes[d] * o.kept[d];
      row /= l_.kept_sizes[d];
    }
    return p;
  }

  void reduce(int64_t row, int64_t first, int64_t count, int64_t part, char* to, char* scratch) const {
    char* ptr[kMaxRowOperands] = {};
    int64_t step[kMaxRowOperands] = {};
    for (size_t i = e_.outputs; i < l_.operands.size(); ++i) {
      step[i] = l_.operands[i].reduced[0];
      ptr[i] = at(l_.operands[i], row, first) + part * kPart * step[i];
    }
    const StrataColumnArgs args{ptr, step, l_.params, to, scratch, std::min(kPart, n_ - part * kPart), count, n_};
    e_.pass[0].columns(&args);
  }

  // The second pass for `count` columns whose reductions are at `made`.
  void finish(int64_t row, int64_t first, int64_t count, const char* made) const {
    char* bases[kMaxRowOperands] = {};
    for (int i = 0; i < e_.outputs; ++i) bases[i] = at(l_.operands[i], row, first);
    alignas(16) Value reduced, single[kMaxRowOperands];
    char* ptr[kMaxRowOperands] = {};
    const StrataRowArgs args{ptr, l_.params, &reduced, nullptr, nullptr, 1, 0, n_, nullptr};
    for (int64_t c = 0; c < count; ++c) {
      if (width_ == 4)
        std::memcpy(reduced.bytes, made + c * 4, 4);
      else
        std::memcpy(reduced.bytes, made + c * width_, size_t(width_));
      for (int i = 0; i < e_.outputs; ++i) {
        const RowOperand& o = l_.operands[i];
        ptr[i] = o.dtype == o.kernel ? bases[i] + c * o.kept.back() : single[i].bytes;
      }
      e_.pass[1].fn(&args);
      for (int i = 0; i < e_.outputs; ++i) {
        const RowOperand& o = l_.operands[i];
        if (o.dtype != o.kernel) cast_fn(o.kernel, o.dtype)(single[i].bytes, 0, bases[i] + c * o.kept.back(), 0, 1);
      }
    }
  }

  const RowsLoop& l_;
  const StrataKernelEntry& e_;
  int64_t n_ = 0, inner_ = 0, outer_ = 1, width_ = 0, parts_ = 1, tile_ = 0, tiles_ = 0;
  std::vector<char> partial_;
};

}  // namespace

bool reduce_columns(const RowsLoop& loop) {
  Columns columns(loop);
  if (!columns.fit()) return false;
  columns.run();
  return true;
}

}  // namespace strata::eager
