#include "run/loop/rows_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "run/loop/cast.h"
#include "run/loop/rows_fold.h"
#include "run/loop/rows_join.h"

namespace strata::eager {

namespace {

constexpr int64_t kBlock = 16, kChunk = 1024;        // columns that a kernel takes at a time; positions of tree T
constexpr int64_t kPiece = 1024, kPlainPiece = 256;  // elements of a piece that are worth the calls for it,
constexpr int64_t kRow = 1024;                       // and of a row, which is worth its positions
constexpr int64_t kGrain = 16384;                    // elements that are worth a thread

class Pieces {
 public:
  explicit Pieces(const RowsLoop& l) : l_(l), e_(*l.entry), first_(e_.outputs), count_(l.operands.size()) {}

  bool fit() {
    if (e_.passes != 2 || !e_.pass[0].columns || e_.pass[0].reductions != 1 || e_.pass[0].broadcast ||
        e_.reduction[0].combine > STRATA_COMBINE_MUL || l_.reduced_sizes.size() < 2)
      return false;
    const StrataReduction& how = e_.reduction[0];
    piece_ = l_.reduced_sizes.back();
    n_ = product(l_.reduced_sizes);
    rows_ = product(l_.kept_sizes);
    if (rows_ == 0 || n_ < kRow) return false;
    for (size_t i = first_; i < count_; ++i) {
      const RowOperand& o = l_.operands[i];
      if (!o.per_row && (o.maker || o.dtype != o.kernel || o.reduced.back() != itemsize(o.kernel))) return false;
    }
    joiner_ = joiner_of(how);
    const size_t input = first_ + e_.pass[0].plain - 1;
    if (e_.pass[0].plain && l_.operands[input].kernel == static_cast<DType>(how.accumulator)) plain_ = input;
    if (plain_ ? piece_ < kPlainPiece : piece_ < kPiece || piece_ % kBlock != 0) return false;
    width_ = itemsize(static_cast<DType>(how.accumulator));
    parts_ = (n_ + kPart - 1) / kPart;
    return true;
  }

  void run() {
    std::vector<Value> made(size_t(rows_ * parts_));
    const int64_t grain = std::max<int64_t>(1, kGrain / std::min(n_, kPart));
    parallel_for(0, rows_ * parts_, grain, [&](int64_t begin, int64_t end) {
      alignas(64) char positions[kChunk * 8];
      for (int64_t i = begin; i < end; ++i) {
        part(i / parts_, i % parts_ * kPart, positions);
        std::copy_n(positions, width_, made[size_t(i)].bytes);
      }
    });
    for (int64_t row = 0; row < rows_; ++row) finish(row, fold(e_.reduction[0], &made[size_t(row * parts_)], parts_));
  }

 private:
  const char* row_base(const RowOperand& o, int64_t row) const { return place(o.base, l_.kept_sizes, o.kept, row); }
  static const char* place(const char* p, const DimVec& sizes, const DimVec& strides, int64_t index) {
    for (size_t d = sizes.size(); d-- > 0; index /= sizes[d]) p += index % sizes[d] * strides[d];
    return p;
  }

  // Elements [begin, begin + 65,536) of a row, or those that are left, into the first of the positions.
  void part(int64_t row, int64_t begin, char* positions) const {
    const int64_t count = std::min(kPart, n_ - begin), groups = (std::min(count, kChunk) + kBlock - 1) / kBlock;
    if (!plain_ || count < kChunk) joiner_.fill(positions, groups * kBlock);
    DimVec outer = l_.reduced_sizes;
    outer.resize(outer.size() - 1);
    char* ptr[kMaxRowOperands] = {};
    int64_t step[kMaxRowOperands] = {};
    for (int64_t done = 0, run; done < count; done += run) {
      const int64_t at = (begin + done) % piece_;
      run = std::min(piece_ - at, count - done);
      for (size_t i = first_; i < count_; ++i) {
        const RowOperand& o = l_.operands[i];
        if (o.per_row) continue;
        step[i] = itemsize(o.kernel);
        ptr[i] = const_cast<char*>(place(row_base(o, row), outer, o.reduced, (begin + done) / piece_)) + at * step[i];
      }
      join(ptr, step, run, done % kChunk, positions, plain_ && count >= kChunk && done < kChunk);
    }
    joiner_.blocks(positions, groups);
    joiner_.lanes(positions, 1);
  }

  // `run` elements, of which the first has that position. begins: those up to the last position are there first.
  void join(char** ptr, const int64_t* step, int64_t run, int64_t position, char* positions, bool begins) const {
    for (int64_t columns, rows; run > 0; run -= columns * rows) {
      columns = std::min(run, kChunk - position);
      if (plain_) {
        char* to = positions + position * width_;
        if (std::exchange(begins, false))
          std::memcpy(to, ptr[plain_], size_t(columns * width_));
        else
          joiner_.join(to, to, ptr[plain_], columns);
        ptr[plain_] += columns * width_;
        rows = 1;
        position = 0;
        continue;
      }
      rows = columns == kChunk ? run / kChunk : 1;
      const StrataColumnArgs args{
          ptr, step, l_.params, positions + position * width_, nullptr, 0, 0, columns, rows, kChunk, n_, 1, 0};
      e_.pass[0].columns(&args);
      for (size_t i = first_; i < count_; ++i) ptr[i] += columns * rows * step[i];
      position = 0;
    }
  }

  // The second pass of a row.
  void finish(int64_t row, const Value& made) const {
    Value own[kMaxRowOperands];
    char* ptr[kMaxRowOperands] = {};
    for (size_t i = 0; i < count_; ++i) {
      const RowOperand& o = l_.operands[i];
      if (!o.per_row) continue;
      char* p = const_cast<char*>(row_base(o, row));
      ptr[i] = o.dtype == o.kernel ? p : own[i].bytes;
      if (i >= first_ && o.dtype != o.kernel) cast_fn(o.dtype, o.kernel)(p, 0, own[i].bytes, 16, 1);
    }
    const StrataRowArgs args{ptr, l_.params, &made, nullptr, nullptr, 1, 0, n_, nullptr};
    e_.pass[1].fn(&args);
    for (size_t i = 0; i < first_; ++i)
      if (const RowOperand& o = l_.operands[i]; o.dtype != o.kernel)
        cast_fn(o.kernel, o.dtype)(own[i].bytes, 0, const_cast<char*>(row_base(o, row)), 0, 1);
  }

  const RowsLoop& l_;
  const StrataKernelEntry& e_;
  size_t first_, count_;  // operands: the first input, and all
  size_t plain_ = 0;      // the input whose elements, as they are, are joined without the kernel
  int64_t piece_ = 0, n_ = 0, rows_ = 0, parts_ = 0, width_ = 0;
  Joiner joiner_{};
};

}  // namespace

bool join_pieces(RowsLoop& loop) { return runs_as<Pieces>(loop); }

}  // namespace strata::eager
