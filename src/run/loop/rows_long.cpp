#include "run/loop/rows_long.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/call_memory.h"
#include "core/parallel.h"
#include "run/loop/across_fold.h"
#include "run/loop/cast.h"
#include "run/loop/rows_fold.h"
#include "run/loop/rows_join.h"

namespace strata::eager {

namespace {

constexpr int64_t kBlock = 16;             // columns that a kernel takes at a time
constexpr int64_t kChunk = 1024;           // positions of tree T
constexpr int64_t kWidest = 256;           // bytes of a line of columns; of longer ones pieces would lie apart
constexpr int64_t kPieceBytes = 16 << 10;  // of accumulators for a piece's positions, in the first-level cache
constexpr int64_t kMostPositions = 256;
constexpr int64_t kGrain = 16384;            // elements that are worth a thread
constexpr int64_t kScratchBytes = 64 << 20;  // of temporaries in all, which last from pass to pass
constexpr int kMaxReductions = 8, kMaxPlaces = kMaxRowOperands + 32;

class Long {
 public:
  explicit Long(RowsLoop& l) : l_(l), e_(*l.entry), count_(int(l.operands.size())) {}

  bool fit() {
    if (l_.reduced_sizes.size() != 1 || l_.kept_sizes.empty()) return false;
    if (e_.reductions > kMaxReductions || count_ + e_.scratch_rows + 3 * e_.reductions > kMaxPlaces) return false;
    n_ = l_.reduced_sizes[0];
    if (n_ <= kChunk) return false;
    for (int p = 0; p < e_.passes; ++p)
      if (!e_.pass[p].across && !e_.pass[p].plain) return false;
    for (int r = 0; r < e_.reductions; ++r)
      if (e_.reduction[r].combine >= STRATA_COMBINE_ARGMAX) return false;
    if (!columns_last()) return false;
    for (size_t d = 0; d + 1 < l_.kept_sizes.size(); ++d) lines_ *= l_.kept_sizes[d];
    const int64_t row = wide_ * itemsize(l_.compute);
    parts_ = (n_ + kPart - 1) / kPart;
    together_ = std::clamp<int64_t>(num_threads() / 8, 1, parts_);
    positions_ = std::clamp(int64_t(std::bit_floor(uint64_t(kPieceBytes / row))), kBlock, kMostPositions);
    return e_.scratch_rows * n_ * row * num_threads() <= kScratchBytes;
  }

  void run() {
    // Threads share the lines, or where these are few each of them.
    parallel_for(0, lines_, lines_ < num_threads() ? lines_ : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) Line(*this, i).run();
    });
  }

 private:
  // A kept dim along which the first input lies becomes the last one, where all elements lie so.
  bool columns_last() {
    const auto input = std::find_if(l_.operands.begin() + e_.outputs, l_.operands.end(),
                                    [](const RowOperand& o) { return !o.per_row; });
    if (input == l_.operands.end()) return false;
    const size_t last = l_.kept_sizes.size() - 1;
    size_t found = last;
    for (size_t d = 0; d <= last; ++d)
      if (input->kept[d] == itemsize(input->dtype) && l_.kept_sizes[d] > 1) found = d;
    columns_ = l_.kept_sizes[found];
    wide_ = (columns_ + kBlock - 1) / kBlock * kBlock;
    if (columns_ < kBlock || columns_ * itemsize(l_.compute) > kWidest) return false;
    if (!std::ranges::all_of(l_.operands, [&](const RowOperand& o) {
          return !o.maker && (o.per_row || o.kept[found] == itemsize(o.dtype));
        }))
      return false;
    l_.columns_along(found);
    return true;
  }

  int64_t width_of(int reduction) const { return itemsize(static_cast<DType>(e_.reduction[reduction].accumulator)); }

  // Of a line's own memory.
  int64_t bytes() const {
    int64_t all = e_.scratch_rows * CallMemory::rounded(n_ * wide_ * itemsize(l_.compute));
    for (int r = 0; r < e_.reductions; ++r)
      all += CallMemory::rounded(together_ * kChunk * wide_ * width_of(r)) +
             CallMemory::rounded(parts_ * wide_ * width_of(r));
    return all + (2 * e_.reductions + count_) * wide_ * 16;
  }

  // All columns, at one index of the other kept dims. The kernel sees a multiple of 16 of them.
  class Line {
   public:
    Line(const Long& all, int64_t line)
        : l_(all), e_(all.e_), columns_(all.columns_), wide_(all.wide_), memory_(all.bytes()) {
      for (int i = 0; i < all.count_; ++i) {
        const RowOperand& o = all.l_.operands[size_t(i)];
        base_[i] = all.l_.column_at(o, line, 0);
        staged_[i] = o.dtype != o.kernel || wide_ != columns_ || (o.per_row && o.kept.back() != itemsize(o.kernel));
        step_[i] = o.per_row ? 0 : staged_[i] ? wide_ * itemsize(o.kernel) : o.reduced[0];
        if (!o.per_row || !staged_[i]) continue;
        values_[i] = memory_.take(wide_ * 16);
        if (!o.output) cast_fn(o.dtype, o.kernel)(base_[i], o.kept.back(), values_[i], itemsize(o.kernel), columns_);
      }
      place_ = all.count_;
      for (int s = 0; s < e_.scratch_rows; ++s, ++place_) {
        step_[place_] = wide_ * itemsize(all.l_.compute);
        base_[place_] = memory_.take(all.n_ * step_[place_]);
      }
      for (int r = 0; r < 2 * e_.reductions; ++r) base_[place_ + r] = memory_.take(wide_ * 16), step_[place_ + r] = 0;
    }

    void run() {
      for (int p = 0; p < e_.passes; done_ += e_.pass[p++].reductions) {
        const StrataRowPass& pass = e_.pass[p];
        if (pass.reductions > 0)
          reduce(pass);
        else if (pass.elementwise)
          parallel_for(0, (l_.n_ + l_.positions_ - 1) / l_.positions_,
                       std::max<int64_t>(1, kGrain / (l_.positions_ * columns_)), [&](int64_t begin, int64_t end) {
                         char* own = part_workspace().get(size_t(piece_bytes()));
                         for (int64_t i = begin; i < end; ++i)
                           piece(pass, i * l_.positions_, std::min(l_.positions_, l_.n_ - i * l_.positions_), own);
                       });
        else
          values(pass);
      }
      for (int i = 0; i < e_.outputs; ++i) {
        const RowOperand& o = l_.l_.operands[size_t(i)];
        if (o.per_row && staged_[i])
          cast_fn(o.kernel, o.dtype)(values_[i], itemsize(o.kernel), base_[i], o.kept.back(), columns_);
      }
    }

   private:
    int64_t piece_bytes() const { return l_.count_ * (l_.positions_ * wide_ * 16 + 64); }

    void values(const StrataRowPass& pass) const {
      char* ptr[kMaxPlaces];
      for (int i = 0; i < place_ + 2 * e_.reductions; ++i) ptr[i] = i < l_.count_ && values_[i] ? values_[i] : base_[i];
      const StrataAcrossArgs args{ptr, step_, l_.l_.params, wide_, l_.n_, 0, l_.n_};
      pass.across(&args);
    }

    // One pass over `count` elements from `first` on, with piece_bytes() of its `own`; what it reduces goes to `made`,
    // by reduction, and joins what is there where there are `joiners`.
    void piece(const StrataRowPass& pass, int64_t first, int64_t count, char* own, char* const* made = nullptr,
               const Joiner* joiners = nullptr) const {
      char* ptr[kMaxPlaces];
      int64_t step[kMaxPlaces];
      for (int i = 0; i < place_ + 2 * e_.reductions; ++i) {
        step[i] = step_[i];
        ptr[i] =
            i < l_.count_ && values_[i] ? values_[i] : base_[i] + (i < l_.count_ && staged_[i] ? 0 : first * step_[i]);
        if (i >= l_.count_) continue;
        const bool per_row = l_.l_.operands[size_t(i)].per_row, again = per_row && i < e_.outputs && first > 0;
        if (!again && (per_row || !staged_[i])) continue;
        ptr[i] = own;  // of a value per column, which the first piece writes, too
        own += ((per_row ? wide_ * 16 : count * step[i]) + 63) / 64 * 64;
        if (per_row) continue;
        if (i >= e_.outputs) stage(i, ptr[i], first, count, true);
      }
      const int room = place_ + 2 * e_.reductions;
      for (int r = 0; r < pass.reductions; ++r) {
        const int64_t row = wide_ * l_.width_of(done_ + r);
        ptr[room + r] = made[r];
        step[room + r] = row;
        if (!pass.plain) continue;
        const char* from = ptr[e_.outputs + pass.plain - 1];
        const int64_t apart = step[e_.outputs + pass.plain - 1], lines = apart == row ? 1 : count;
        for (int64_t k = 0; k < lines; ++k, from += apart) {
          char* to = made[r] + k * row;
          if (joiners)
            joiners[r].join(to, to, from, count / lines * wide_);
          else
            std::memcpy(to, from, size_t(count / lines * row));
        }
      }
      const StrataAcrossArgs args{ptr, step, l_.l_.params, wide_, l_.n_, first, count};
      if (pass.across) pass.across(&args);
      for (int i = 0; i < e_.outputs && pass.elementwise; ++i)
        if (staged_[i] && !l_.l_.operands[size_t(i)].per_row) stage(i, ptr[i], first, count, false);
    }

    void stage(int i, char* own, int64_t first, int64_t count, bool in) const {
      const RowOperand& o = l_.l_.operands[size_t(i)];
      const CastFn cast = in ? cast_fn(o.dtype, o.kernel) : cast_fn(o.kernel, o.dtype);
      char* p = base_[i] + first * o.reduced[0];
      for (int64_t k = 0; k < count; ++k, p += o.reduced[0], own += step_[i])
        in ? cast(p, itemsize(o.dtype), own, itemsize(o.kernel), columns_)
           : cast(own, itemsize(o.kernel), p, itemsize(o.dtype), columns_);
    }

    // Elements join those at their positions of tree T, chunk after chunk: some positions at a time, which stay near.
    void reduce(const StrataRowPass& pass) {
      char *runs[kMaxReductions], *partial[kMaxReductions];
      Joiner joiners[kMaxReductions];
      for (int r = 0; r < pass.reductions; ++r) {
        const int64_t row = wide_ * l_.width_of(done_ + r);
        runs[r] = memory_.take(l_.together_ * kChunk * row);
        partial[r] = memory_.take(l_.parts_ * row);
        joiners[r] = joiner_of(e_.reduction[done_ + r]);
      }
      const int64_t pieces = kChunk / l_.positions_, elements = std::min(l_.n_, kPart) / pieces * columns_;
      for (int64_t from = 0; from < l_.parts_; from += l_.together_) {
        const int64_t parts = std::min(l_.together_, l_.parts_ - from);
        parallel_for(0, parts * pieces, std::max<int64_t>(1, kGrain / elements), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) join(pass, joiners, from, i / pieces, i % pieces * l_.positions_, runs);
        });
        for (int r = 0; r < pass.reductions; ++r)
          for (int64_t part = from; part < from + parts; ++part) {
            const int64_t row = wide_ * l_.width_of(done_ + r), count = std::min(kChunk, l_.n_ - part * kPart);
            char* all = runs[r] + (part - from) * kChunk * row;
            fold_columns(e_.reduction[done_ + r], all, row, count, wide_, all, partial[r] + part * row, nullptr);
          }
      }
      for (int r = 0; r < pass.reductions; ++r) {
        const int64_t row = wide_ * l_.width_of(done_ + r);
        join_pairs(joiners[r], partial[r], l_.parts_, row, wide_);
        std::memcpy(base_[place_ + 2 * (done_ + r)], partial[r], size_t(row));
      }
    }

    // The elements at some positions from `position` on of a part, which is the part-th from `from` on.
    void join(const StrataRowPass& pass, const Joiner* joiners, int64_t from, int64_t part, int64_t position,
              char* const* runs) const {
      const int64_t start = (from + part) * kPart, last = std::min(l_.n_, start + kPart);
      char *to[kMaxReductions], *room[kMaxReductions];
      char* memory = part_workspace().get(size_t(pass.reductions * l_.positions_ * wide_ * 16 + piece_bytes()));
      char* own = memory + pass.reductions * l_.positions_ * wide_ * 16;
      for (int r = 0; r < pass.reductions; ++r) {
        to[r] = runs[r] + (part * kChunk + position) * wide_ * l_.width_of(done_ + r);
        room[r] = memory + r * l_.positions_ * wide_ * 16;
      }
      for (int64_t first = start + position; first < last; first += kChunk) {
        const int64_t count = std::min(l_.positions_, last - first);
        const bool begins = first < start + kChunk;
        const bool joins = !begins && !pass.plain;
        piece(pass, first, count, own, joins ? room : to, begins ? nullptr : joiners);
        for (int r = 0; r < pass.reductions && joins; ++r) joiners[r].join(to[r], to[r], room[r], count * wide_);
      }
    }

    const Long& l_;
    const StrataKernelEntry& e_;
    const int64_t columns_, wide_;
    CallMemory memory_;
    int place_ = 0, done_ = 0;  // operands and temporaries; reductions of the passes so far
    // By place (kernel_abi.h, StrataAcrossArgs): the first element, or where one value per column is converted, that.
    char* base_[kMaxPlaces] = {};
    char* values_[kMaxRowOperands] = {};
    int64_t step_[kMaxPlaces] = {};
    bool staged_[kMaxRowOperands] = {};
  };

  RowsLoop& l_;
  const StrataKernelEntry& e_;
  int count_;  // operands
  int64_t n_ = 0, columns_ = 0, wide_ = 0, lines_ = 1, parts_ = 0, together_ = 0, positions_ = 0;
};

}  // namespace

bool run_long(RowsLoop& loop) { return runs_as<Long>(loop); }

}  // namespace strata::eager
