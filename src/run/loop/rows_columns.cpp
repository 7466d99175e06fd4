#include "run/loop/rows_columns.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/parallel.h"
#include "run/isa.h"
#include "run/loop/cast.h"
#include "run/loop/rows_across.h"
#include "run/loop/rows_fold.h"
#include "run/loop/rows_interleaved.h"
#include "run/loop/rows_join.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int64_t kBlock = 16;       // columns that a kernel takes at a time; positions of tree T that are one group
constexpr int64_t kChunk = 1024;     // positions of tree T
constexpr int64_t kTogether = 4;     // chunks or blocks that are read in one go
constexpr int64_t kSumBytes = 4096;  // of accumulators side by side: 112 such rows stay in the second-level cache
constexpr int64_t kExtremumBytes = 4096;        // 16 such rows stay in the first-level cache
constexpr int64_t kPositionsBytes = 256 << 10;  // of accumulators for all positions
constexpr int64_t kFewChunks = 8;               // of which each is a run of its own through memory
constexpr int64_t kFewBytes = 16 << 10;         // of accumulators of all positions, where these are few
constexpr int64_t kStagedBytes = 128 << 10;

int64_t blocks(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }
// Groups of 16 positions of tree T that n elements have.
int64_t groups_of(int64_t n) { return blocks(std::min(n, kChunk)) / kBlock; }

// Where elements of columns are: by input, the first column's element at position 0, and the bytes between positions.
struct Source {
  char* ptr[kMaxRowOperands] = {};
  int64_t step[kMaxRowOperands] = {};
};

class Columns {
 public:
  explicit Columns(RowsLoop& l) : l_(l), e_(*l.entry), first_(e_.outputs), count_(l.operands.size()) {}

  bool fit() {
    if (e_.passes != 2 || !e_.pass[0].columns || l_.kept_sizes.empty() || l_.reduced_sizes.empty()) return false;
    if (std::any_of(l_.operands.begin(), l_.operands.end(), [](const RowOperand& o) { return o.maker; })) return false;
    n_ = product(l_.reduced_sizes);
    nearest_last();
    inner_ = l_.kept_sizes.back();
    for (size_t d = 0; d + 1 < l_.kept_sizes.size(); ++d) outer_ *= l_.kept_sizes[d];
    if (n_ == 0 || inner_ < 2 || outer_ == 0) return false;
    dense_ = true;
    bool side_by_side = l_.reduced_sizes.size() == 1, along = false, masks = true;
    for (size_t i = first_; i < count_; ++i) {
      const RowOperand& o = l_.operands[i];
      if (o.per_row && !broadcasts(i)) continue;
      const int64_t width = itemsize(o.kernel), step = o.reduced.back();
      side_by_side &= o.dtype == o.kernel && o.kept.back() == (broadcasts(i) && !o.per_row ? 0 : width);
      dense_ &= !broadcasts(i) && step == inner_ * width;
      masks &= o.dtype == o.kernel;
      along |= !broadcasts(i) && std::abs(step) < std::abs(o.kept.back());
    }
    const StrataReduction& how = e_.reduction[0];
    sum_ = how.combine <= STRATA_COMBINE_MUL;
    width_ = itemsize(static_cast<DType>(how.accumulator));
    tile_ = (sum_ ? kSumBytes : kExtremumBytes) / width_;
    dense_ &= inner_ <= tile_;
    staged_ = !side_by_side || (!dense_ && inner_ < kBlock);
    if (!staged_ && n_ < kBlock && inner_ % kBlock == 0)
      dense_ = false;  // most of a block of positions would be missing
    masks &= current_isa() == kIsaCount - 1 && width_ <= 4 && (sum_ || n_ == kShortColumn);  // or rows as they lie
    const bool longer = masks || n_ > kShortColumn || (outer_ > 1 && inner_ < kBlock);
    const bool others = along && (n_ <= short_across({1, !sum_, 1, false}) ? has_across(e_) : longer);
    if (staged_ && (e_.pass[0].broadcast || interleaved() || others)) return false;
    if (outer_ > 1 && n_ * inner_ < kFewElements) return false;
    if (outer_ > 1 && inner_ == 2 && dense_ && width_ == 4 && n_ <= kChunk) return false;  // pairs come apart
    return n_ * inner_ * outer_ >= kSmall || (!staged_ && inner_ >= kBlock && n_ > 1);
  }

  void run() {
    joiner_ = joiner_of(e_.reduction[0]);
    if (joiner_.wide && e_.pass[0].plain) {
      const size_t input = first_ + e_.pass[0].plain - 1;
      if (l_.operands[input].kernel == static_cast<DType>(e_.reduction[0].accumulator)) plain_ = input;
    }
    if (staged_) {
      int64_t bytes = 0;
      for (size_t i = first_; i < count_; ++i) bytes += l_.operands[i].per_row ? 0 : itemsize(l_.operands[i].kernel);
      tile_ = std::clamp<int64_t>(kStagedBytes / (bytes * std::min(n_, kChunk)) / kBlock * kBlock, kBlock, tile_);
      dense_ = true;
    }
    const int64_t few = n_ <= kBlock ? std::max(kBlock, kFewBytes / (n_ * width_) / kBlock * kBlock) : tile_;
    dense_ &= staged_ || inner_ <= few;  // else rows of a tile do not follow one another
    tile_ = std::min({tile_, few, dense_ ? inner_ : inner_ / kBlock * kBlock});
    tiles_ = (inner_ + tile_ - 1) / tile_;
    parts_ = (n_ + kPart - 1) / kPart;
    span_ = span();
    shards_ = (groups_of(n_) + span_ - 1) / span_;
    const int64_t each = parts_ * shards_, tasks = outer_ * tiles_ * each;
    if (each > 1) partial_.reset(new char[size_t(outer_ * tiles_ * each * slot(blocks(tile_)))]);
    const int64_t grain = std::max<int64_t>(1, 16384 / (std::min(n_, kPart) / shards_ * tile_ + 1));
    parallel_for(0, tasks, grain, [&](int64_t begin, int64_t end) {
      static thread_local Workspace space;
      for (int64_t i = begin; i < end; ++i) Task(*this, i, space).run();
    });
    if (each == 1) return;
    for (int64_t i = 0; i < outer_ * tiles_; ++i) {
      char* all = partial_.get() + i * each * slot(blocks(tile_));
      const int64_t wide = width_of(i % tiles_);
      for (int64_t p = 0; p < parts_; ++p) {
        char* part = all + p * shards_ * slot(blocks(tile_));
        pairs(part, (groups_of(n_ - p * kPart) + span_ - 1) / span_, kBlock * wide);
        lanes(part, wide, kBlock);
      }
      pairs(all, parts_, wide, shards_);
      const int64_t first = i % tiles_ * tile_;
      finish(i / tiles_, first, all + (first - begin_of(i % tiles_)) * width_);
    }
  }

 private:
  // Whether an input lacks the columns' dim or, per row, the reduced one.
  bool broadcasts(size_t input) const { return e_.pass[0].broadcast >> (input - first_) & 1; }

  // Rows whose neighbours lie between their own elements are taken as a whole (rows_interleaved.h).
  bool interleaved() const {
    if (n_ < kShortColumn || (n_ > kPart && inner_ * outer_ < kFewRows)) return false;
    std::vector<bool> apart;
    for (const RowOperand& o : l_.operands) apart.push_back(o.per_row);
    return rows_interleaved(l_, apart);
  }

  int64_t slot(int64_t wide) const { return kBlock * wide * width_; }

  // The columns of a tile, with those that make its last block whole, or so many that a kernel takes trees of them: it
  // begins among those of the tile before.
  int64_t width_of(int64_t tile) const {
    const int64_t count = std::min(tile_, inner_ - tile * tile_), trees = STRATA_TREE_BYTES / width_;
    return dense_ ? count : inner_ >= trees && tile > 0 ? std::max(blocks(count), trees) : blocks(count);
  }
  int64_t begin_of(int64_t tile) const { return std::min(tile * tile_, inner_ - width_of(tile)); }

  // A kept dim along which the first input lies becomes the last one.
  void nearest_last() {
    size_t input = first_;
    while (input < count_ && (l_.operands[input].per_row || broadcasts(input))) ++input;
    if (input == count_) return;
    const RowOperand& o = l_.operands[input];
    const size_t last = l_.kept_sizes.size() - 1;
    const int64_t width = itemsize(o.dtype);
    if (o.kept.back() == width) return;
    for (size_t d = 0; d < last; ++d)
      if (o.kept[d] == width && l_.kept_sizes[d] >= kBlock) return l_.columns_along(d);
  }

  // Groups of tree T, a power of two, that one thread works on: so few that every thread has some.
  int64_t span() const {
    const int64_t tasks = outer_ * tiles_ * parts_, threads = num_threads(), all = groups_of(n_);
    const bool whole = !sum_ || tasks >= threads || n_ * tile_ < 32768;
    const int64_t wanted = whole ? 1 : (threads + tasks - 1) / tasks;
    return std::max(kTogether, int64_t(std::bit_ceil(uint64_t((all + wanted - 1) / wanted))));
  }

  // Runs of `n` accumulators, `apart` slots from each other, as one.
  void pairs(char* all, int64_t runs, int64_t n, int64_t apart = 1) const {
    join_pairs(joiner_, all, runs, slot(blocks(tile_)) * apart, n);
  }

  // Tree T's bits 3 to 0: `present` of 16 runs of `wide` accumulators.
  void lanes(char* a, int64_t wide, int64_t present) const {
    if (present == kBlock && wide >= kBlock) return joiner_.lanes(a, wide);
    for (int64_t h = kBlock / 2; h > 0; h /= 2) {
      if (present <= h) continue;
      joiner_.join(a, a, a + h * wide * width_, (present - h) * wide);
      present = h;
    }
  }

  // The second pass for a tile whose reductions are at `made`.
  void finish(int64_t row, int64_t first, const char* made) const {
    const int64_t count = std::min(tile_, inner_ - first), room = count * 16;
    constexpr int kPlaces = kMaxRowOperands + 2;
    char* ptr[kPlaces] = {};
    std::unique_ptr<char[]> buffer;
    auto lies_ready = [](const RowOperand& o) { return o.dtype == o.kernel && o.kept.back() == itemsize(o.kernel); };
    for (size_t i = 0; i < count_; ++i) {
      const RowOperand& o = l_.operands[i];
      if (!o.per_row) continue;
      ptr[i] = l_.column_at(o, row, first);
      if (lies_ready(o)) continue;
      if (!buffer) buffer.reset(new char[size_t(room) * count_]);
      char* own = buffer.get() + room * int64_t(i);
      if (i >= first_) cast_fn(o.dtype, o.kernel)(ptr[i], o.kept.back(), own, itemsize(o.kernel), count);
      ptr[i] = own;
    }
    ptr[count_] = const_cast<char*>(made);
    const int64_t whole = e_.pass[1].across && !e_.scratch_rows ? count / kBlock * kBlock : 0, steps[kPlaces] = {};
    const StrataAcrossArgs blocks{ptr, steps, l_.params, whole, n_, 0, n_};
    if (whole) e_.pass[1].across(&blocks);
    char* rest[kMaxRowOperands];
    for (size_t i = 0; i < count_; ++i) rest[i] = ptr[i] ? ptr[i] + whole * itemsize(l_.operands[i].kernel) : nullptr;
    const StrataRowArgs args{rest, l_.params, made + whole * width_, nullptr, nullptr, count - whole, 0, n_, nullptr};
    if (whole < count) e_.pass[1].fn(&args);
    for (size_t i = 0; i < first_; ++i)
      if (const RowOperand& o = l_.operands[i]; !lies_ready(o))
        cast_fn(o.kernel, o.dtype)(ptr[i], itemsize(o.kernel), l_.column_at(o, row, first), o.kept.back(), count);
  }

  // One tile, one part of at most 65,536 elements, one run of groups.
  class Task {
   public:
    Task(const Columns& c, int64_t index, Workspace& space) : c_(c), index_(index) {
      const int64_t shard = index % c.shards_, part = index / c.shards_ % c.parts_, i = index / c.shards_ / c.parts_;
      tile_ = i % c.tiles_;
      row_ = i / c.tiles_;
      begin_ = part * kPart;
      n_ = std::min(kPart, c.n_ - begin_);
      wide_ = c.width_of(tile_);
      slot_ = c.slot(wide_);
      group_ = shard * c.span_;
      span_ = std::max<int64_t>(0, std::min(c.span_, groups_of(n_) - group_));  // a short last part has few groups
      bare_ = n_ < kBlock && c.parts_ * c.shards_ == 1;
      one_run_ = c.plain_ && !c.dense_ && c.parts_ * c.shards_ == 1;
      trees_ = c.e_.pass[0].trees && (c.dense_ ? kBlock : 1) * wide_ * c.width_ >= STRATA_TREE_BYTES;
      const int64_t all = kChunk * wide_ * c.width_;
      tree_chunks_ = c.dense_ && all < kPositionsBytes ? kFewChunks : kTogether;
      const bool far = all > kPositionsBytes || (trees_ && n_ <= tree_chunks_ * kChunk);
      all_positions_ = c.sum_ && c.dense_ && n_ > kChunk && (c.staged_ || !far);
      int64_t widest = c.width_;
      for (size_t i = c.first_; i < c.count_; ++i) {
        const RowOperand& o = c.l_.operands[i];
        widest = std::max(widest, itemsize(o.kernel));
        if (o.per_row && !c.broadcasts(i)) continue;  // the second pass alone reads it
        base_.ptr[i] = c.l_.column_at(o, row_, c.begin_of(tile_));
        base_.step[i] = o.per_row ? 0 : o.reduced.back();
      }
      rest_room_ = c.dense_ ? (wide_ + kBlock) * kBlock * widest : 0;
      const int64_t slots = all_positions_ ? kChunk / kBlock : 7;
      staged_room_ = c.staged_ ? (std::min(c.sum_ ? kBlock * span_ : kChunk, n_) * wide_ + kBlock) * widest : 0;
      const int64_t inputs = int64_t(c.count_ - c.first_);
      memory_ = space.get(size_t(slots * slot_ + (1 + inputs) * rest_room_ + inputs * staged_room_ + kBlock * widest));
      rest_ = memory_ + slots * slot_;
      tails_ = rest_ + rest_room_;
      staging_ = tails_ + inputs * rest_room_;
    }

    void run() {
      if (span_ == 0) return;
      char* made = c_.sum_ ? sum() : extremum();
      if (c_.parts_ * c_.shards_ > 1) {
        std::memcpy(c_.partial_.get() + index_ * c_.slot(blocks(c_.tile_)), made, size_t(slot_));
        return;
      }
      c_.lanes(made, wide_, one_run_ ? 1 : std::min(n_, kBlock));
      const int64_t first = tile_ * c_.tile_;
      c_.finish(row_, first, made + (first - c_.begin_of(tile_)) * c_.width_);
    }

   private:
    char* sum() {
      if (all_positions_) return positions();
      const int64_t first = kBlock * group_;
      if (!c_.staged_) return groups(base_, begin_ + first, n_ - first);
      const int64_t count = std::min(n_ - first, kBlock * span_);
      return groups(staged(begin_ + first, count), 0, count);
    }

    // `count` positions from `first` on in memory of the task, dense and as the kernel takes them.
    Source staged(int64_t first, int64_t count) const {
      Source s;
      char* to = staging_;
      for (size_t i = c_.first_; i < c_.count_; ++i, to += staged_room_) {
        if (c_.l_.operands[i].per_row) continue;
        s.ptr[i] = to;
        s.step[i] = wide_ * itemsize(c_.l_.operands[i].kernel);
        stage(c_.l_.operands[i], base_.ptr[i], first, count, to);
      }
      return s;
    }

    void stage(const RowOperand& o, const char* base, int64_t first, int64_t count, char* to) const {
      const DimVec& sizes = c_.l_.reduced_sizes;
      const int64_t width = itemsize(o.kernel), step = o.kept.back(), apart = o.reduced.back();
      const CastFn cast = cast_fn(o.dtype, o.kernel);
      while (count > 0) {
        const int64_t inner = first % sizes.back(), run = std::min(count, sizes.back() - inner);
        const char* from = base + inner * apart;
        int64_t rest = first / sizes.back();
        for (size_t d = sizes.size() - 1; d-- > 0; rest /= sizes[d]) from += rest % sizes[d] * o.reduced[d];
        if (step == itemsize(o.dtype) && apart == wide_ * step)
          cast(from, step, to, width, run * wide_);
        else if (o.dtype == o.kernel && apart == width && step > width)
          transpose(width, from, step, to, wide_ * width, wide_, run);
        else if (run > 1 && std::abs(apart) < std::abs(step) && width <= 8)
          cast_turned(cast, width, from, step, apart, to, wide_, run);
        else
          for (int64_t r = 0; r < run; ++r) cast(from + r * apart, step, to + r * wide_ * width, width, wide_);
        to += run * wide_ * width;
        first += run;
        count -= run;
      }
    }

    // ---- calls of the kernel

    StrataColumnArgs of(int64_t columns, char* to) const {
      return {nullptr, nullptr, c_.l_.params, to, nullptr, 0, 0, columns, 1, 0, c_.n_, 1, 1};
    }

    // From position `p` on.
    void call(const Source& s, int64_t p, StrataColumnArgs& args) const {
      char* ptr[kMaxRowOperands];
      for (size_t i = c_.first_; i < c_.count_; ++i) ptr[i] = s.ptr[i] + p * s.step[i];
      args.ptr = ptr;
      args.step = s.step;
      c_.e_.pass[0].columns(&args);
    }

    // Elements first, first + jump ... before `end` of `columns` columns; they join `lowers` slots.
    void line(const Source& s, int64_t first, int64_t end, int64_t jump, int64_t columns, char* to, bool begins,
              const char* lower = nullptr, int64_t lowers = 0) const {
      if (c_.plain_) {
        for (int64_t p = first; p < end; p += jump) {
          const char* from = s.ptr[c_.plain_] + p * s.step[c_.plain_];
          if (begins && p == first)
            std::memcpy(to, from, size_t(columns * c_.width_));
          else
            c_.joiner_.join(to, to, from, columns);
        }
        return;
      }
      for (int64_t p = first; p < end; p += kTogether * jump) {
        StrataColumnArgs args = of(columns, to);
        args.rows = std::min(kTogether, (end - p + jump - 1) / jump);
        args.jump = jump;
        args.begins = begins && p == first;
        args.lower = lower;
        args.lowers = p + kTogether * jump < end ? 0 : lowers;
        args.apart = slot_;
        call(s, p, args);
      }
    }

    // The last positions of a dense source, fewer than 16: in room of their own, since a kernel takes whole blocks.
    void rest(const Source& s, int64_t p, int64_t count, char* to, bool begins) const {
      Source tail;
      char* memory = tails_;
      for (size_t i = c_.first_; i < c_.count_; ++i, memory += rest_room_) {
        if (s.step[i] == 0) continue;  // a value per row
        tail.ptr[i] = memory;
        tail.step[i] = s.step[i];
        std::memcpy(memory, s.ptr[i] + p * s.step[i], size_t(count * s.step[i]));
      }
      const int64_t columns = count * wide_;
      StrataColumnArgs args = of(blocks(columns), bare_ ? to : rest_);
      call(tail, 0, args);
      if (bare_) return;
      if (!begins) return c_.joiner_.join(to, to, rest_, columns);
      std::memcpy(to, rest_, size_t(columns * c_.width_));
      c_.joiner_.fill(to + columns * c_.width_, kBlock * wide_ - columns);
    }

    void join_lowers(char* to, const char* lower, int64_t lowers, int64_t n) const {
      for (; lowers > 0; --lowers, lower += slot_) c_.joiner_.join(to, lower, to, n);
    }

    // ---- sums

    // All positions side by side, chunk after chunk: memory is read in its order.
    char* positions() const {
      const int64_t first = kBlock * group_, span = kBlock * span_;
      for (int64_t p = first; p < n_;) {
        const int64_t m = std::min(span, n_ - p), whole = m / kBlock * kBlock;
        int64_t rows = 1;
        while (!c_.staged_ && m == span && rows < kTogether && n_ - p - rows * kChunk >= span) ++rows;
        const Source own = c_.staged_ ? staged(begin_ + p, m) : Source(), &s = c_.staged_ ? own : base_;
        const int64_t at = c_.staged_ ? 0 : begin_ + p;
        if (whole > 0) line(s, at, at + rows * kChunk, kChunk, whole * wide_, memory_, p == first);
        if (m > whole) rest(s, at + whole, m - whole, memory_ + whole * wide_ * c_.width_, p == first);
        p += rows * kChunk;
      }
      join_pairs(c_.joiner_, memory_, span_, slot_, kBlock * wide_);
      return memory_;
    }

    // Group after group; they meet as the digits of a binary counter do, so that slot s holds the sum of 2^s of them.
    // `n`: elements from the first group's first, p, on.
    char* groups(const Source& s, int64_t p, int64_t n) const {
      for (int64_t g = 0; g < span_; ++g) {
        const int64_t left = n - kBlock * g, many = kTogether * kBlock;
        // Positions that have equally many elements, and few: each is a run of its own through memory.
        if (trees_ && g % kTogether == 0 && span_ - g >= kTogether && left >= many && left <= tree_chunks_ * kChunk &&
            (left - many) / kChunk == (left - 1) / kChunk) {
          tree(s, p + kBlock * g, (left - 1) / kChunk + 1, std::countr_one(uint64_t(g / kTogether)));
          g += kTogether - 1;
          continue;
        }
        group(s, p + kBlock * g, left, std::countr_one(uint64_t(g)));
      }
      char* low = memory_ + std::countr_zero(uint64_t(span_)) * slot_;
      for (int64_t others = span_ & (span_ - 1); others; others &= others - 1) {
        char* a = memory_ + std::countr_zero(uint64_t(others)) * slot_;
        c_.joiner_.join(a, a, low, kBlock * wide_);
        low = a;
      }
      return low;
    }

    // Four groups, which join `lowers` slots from the third on; the result is in the slot after these.
    void tree(const Source& s, int64_t p, int64_t rows, int64_t lowers) const {
      char *lower = memory_ + 2 * slot_, *to = lower + lowers * slot_;
      const int64_t runs = c_.dense_ ? 1 : kBlock, columns = kBlock / runs * wide_;
      for (int64_t l = 0; l < runs; ++l, to += columns * c_.width_, lower += columns * c_.width_) {
        StrataColumnArgs args = of(columns, to);
        args.lower = lower;
        args.lowers = lowers;
        args.apart = slot_;
        args.rows = rows;
        args.jump = kChunk;
        args.tree = STRATA_COLUMN_TREE;
        call(s, p + l, args);
      }
    }

    // The 16 positions of one group, which have `left` elements before the part's end; they join `lowers` slots.
    void group(const Source& s, int64_t p, int64_t left, int64_t lowers) const {
      char *lower = memory_, *to = memory_ + lowers * slot_;
      if (!c_.dense_) {
        for (int64_t l = 0; l < kBlock; ++l, to += wide_ * c_.width_, lower += wide_ * c_.width_) {
          if (l < left) {
            line(s, p + l, p + left, kChunk, wide_, to, true, lower, lowers);
          } else if (!bare_) {
            c_.joiner_.fill(to, wide_);
            join_lowers(to, lower, lowers, wide_);
          }
        }
        return;
      }
      const int64_t tail = left % kChunk, whole = left - (tail < kBlock ? tail : 0);
      line(s, p, p + whole, kChunk, kBlock * wide_, to, true, lower, whole == left ? lowers : 0);
      if (whole == left) return;
      rest(s, p + whole, tail, to, whole == 0);
      join_lowers(to, lower, lowers, kBlock * wide_);
    }

    // ---- the largest or smallest, in 16 lanes as elsewhere

    char* extremum() const {
      for (int64_t p = 0; p < n_; p += c_.staged_ ? kChunk : n_) {
        const int64_t n = c_.staged_ ? std::min(kChunk, n_ - p) : n_;
        const Source own = c_.staged_ ? staged(begin_ + p, n) : Source(), &s = c_.staged_ ? own : base_;
        for (int64_t q = 0; q < n; q += kTogether * kBlock) {
          const int64_t m = std::min(kTogether * kBlock, n - q), whole = m / kBlock * kBlock;
          const int64_t at = c_.staged_ ? q : begin_ + q;
          const bool begins = p + q == 0;
          if (one_run_) {  // of integers, in whatever order
            line(s, at, at + m, 1, wide_, memory_, begins);
            continue;
          }
          if (c_.dense_) {
            line(s, at, at + whole, kBlock, kBlock * wide_, memory_, begins);
            if (m > whole) rest(s, at + whole, m - whole, memory_, begins && whole == 0);
            continue;
          }
          for (int64_t l = 0; l < kBlock; ++l) {
            char* to = memory_ + l * wide_ * c_.width_;
            if (l < m)
              line(s, at + l, at + m, kBlock, wide_, to, begins);
            else if (begins && !bare_)
              c_.joiner_.fill(to, wide_);
          }
        }
      }
      return memory_;
    }

    const Columns& c_;
    int64_t index_, tile_, row_, begin_, n_, wide_, slot_, group_, span_, rest_room_, staged_room_, tree_chunks_;
    bool all_positions_, trees_, bare_, one_run_;
    Source base_;
    char *memory_, *rest_, *tails_, *staging_;
  };

  RowsLoop& l_;
  const StrataKernelEntry& e_;
  size_t first_, count_;  // operands: the first input, and all
  size_t plain_ = 0;      // the input whose elements, as they are, joiner_ joins instead of the kernel
  bool sum_ = false, dense_ = false, staged_ = false;
  int64_t n_ = 1, inner_ = 0, outer_ = 1, width_ = 0, parts_ = 1, tile_ = 0, tiles_ = 0, shards_ = 1, span_ = 1;
  Joiner joiner_{};
  std::unique_ptr<char[]> partial_;
};

}  // namespace

bool reduce_columns(RowsLoop& loop) { return runs_as<Columns>(loop); }

}  // namespace strata::eager
