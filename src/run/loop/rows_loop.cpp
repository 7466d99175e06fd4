#include "run/loop/rows_loop.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "core/parallel.h"
#include "run/loop/blocks.h"
#include "run/loop/cast.h"
#include "run/loop/extremum.h"
#include "run/loop/maker.h"
#include "run/loop/rows_across.h"
#include "run/loop/rows_columns.h"
#include "run/loop/rows_fold.h"
#include "run/loop/rows_gathered.h"
#include "run/loop/rows_interleaved.h"
#include "run/loop/rows_long.h"
#include "run/loop/rows_pieces.h"
#include "run/loop/rows_runs.h"
#include "run/loop/rows_scratch.h"
#include "run/loop/rows_turned.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int64_t kTile = 16;      // rows gathered together when neighbours in memory are different rows,
constexpr int64_t kWideTile = 64;  // or as many where they fit the outer caches
constexpr int64_t kTileBytes = 2 << 20;
constexpr int64_t kTinyRun = 8;  // elements next to each other that take less time than a call for them
constexpr int kMaxReductions = 8;

class Runner {
 public:
  explicit Runner(RowsLoop& l)
      : l_(l), e_(*l.entry), n_(product(l.reduced_sizes)), rows_(product(l.kept_sizes)), runs_(l) {
    for (size_t i = 0; i < l_.operands.size(); ++i) {
      const RowOperand& o = l_.operands[i];
      direct_.push_back(o.per_row || runs_.spreads(i) || contiguous(o));
      in_place_ &= direct_.back() && (runs_.spreads(i) || lies_ready(o));
    }
    interleaved_ = rows_interleaved(l_, direct_);
    if (e_.reductions && e_.reduction[0].combine > STRATA_COMBINE_MUL && e_.pass[0].plain)
      extrema_ = Extrema(e_, l_.operands[plain_operand()].kernel);
  }

  int32_t run() {
    if (rows_ == 0) return 0;
    if (n_ > kPart && rows_ < kFewRows) {
      for (int64_t r = 0; r < rows_; ++r) run_long(r);
      return status_;
    }
    int64_t tile = tile_rows(), grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(n_, 1));
    if (tile > 1) grain = (grain + tile - 1) / tile * tile;
    parallel_for(0, rows_, grain, [&](int64_t begin, int64_t end) {
      static thread_local Workspace space;
      int32_t status = 0;
      run_rows(begin, end, tile, space, &status);
      if (status) status_.fetch_or(status);
    });
    return status_;
  }

 private:
  size_t plain_operand() const { return size_t(e_.outputs + e_.pass[0].plain - 1); }
  // The function of a pass, or what takes its place.
  void call(int pass, const StrataRowArgs& args) const {
    if (pass == 0 && extrema_) return extrema_.run(args, args.ptr[plain_operand()]);
    if (pass == e_.passes - 1 && runs_) return runs_.call(args);
    e_.pass[pass].fn(&args);
  }

  // In memory, as the kernel takes it.
  static bool lies_ready(const RowOperand& o) { return o.dtype == o.kernel && !o.maker; }

  // Elements of a row follow each other and need no conversion.
  bool contiguous(const RowOperand& o) const { return lies_ready(o) && follow_each_other(o); }

  bool follow_each_other(const RowOperand& o) const {
    return eager::follow_each_other(l_.reduced_sizes, o.reduced, itemsize(o.kernel));
  }

  // Rows worth gathering together: neighbours in memory belong to different rows.
  int64_t tile_rows() const {
    if (l_.kept_sizes.empty() || l_.kept_sizes.back() < 2 || n_ * kTile > (int64_t(1) << 22)) return 1;
    bool meet = interleaved_;
    for (size_t i = 0; i < l_.operands.size(); ++i)
      meet |= !direct_[i] && l_.operands[i].kept.back() == itemsize(l_.operands[i].dtype);
    if (!meet) return 1;
    const bool wide = row_bytes() * kWideTile <= kTileBytes && !(interleaved_ && rows_ < 2 * kWideTile * num_threads());
    return wide ? kWideTile : kTile;
  }

  // Room for a staged row of any operand, in whole blocks.
  int64_t row_bytes() const {
    int64_t width = itemsize(l_.compute);
    for (const RowOperand& o : l_.operands) width = std::max(width, itemsize(o.kernel));
    return (n_ + 15) / 16 * 16 * width;
  }

  char* row_base(const RowOperand& o, int64_t row) const {
    char* p = o.base;
    if (l_.kept_sizes.empty()) return p;
    for (size_t d = l_.kept_sizes.size(); --d > 0;) {
      p += row % l_.kept_sizes[d] * o.kept[d];
      row /= l_.kept_sizes[d];
    }
    return p + row * o.kept[0];
  }

  // Elements of an input into a buffer, `width` apart.
  static void take(const RowOperand& o, const char* from, int64_t stride, char* to, int64_t width, int64_t count) {
    if (o.maker) return make_elements(*o.maker, from, stride, itemsize(o.kernel), to, width, count);
    cast_fn(o.dtype, o.kernel)(from, stride, to, width, count);
  }

  // Moves elements [first, first + count) of a row between memory and a contiguous buffer.
  void stage(const RowOperand& o, char* base, char* buffer, int64_t first, int64_t count, bool in) const {
    if (count == 0) return;
    const CastFn cast = cast_fn(o.kernel, o.dtype);
    int64_t width = itemsize(o.kernel);
    const DimVec& sizes = l_.reduced_sizes;
    size_t nd = sizes.size();
    if (nd == 0) return in ? take(o, base, 0, buffer, width, 1) : cast(buffer, width, base, 0, 1);
    if (o.maker && follow_each_other(o))
      return take(o, base + first * o.reduced[nd - 1], o.reduced[nd - 1], buffer, width, count);
    if (nd == 1) {
      char* p = base + first * o.reduced[0];
      return in ? take(o, p, o.reduced[0], buffer, width, count) : cast(buffer, width, p, o.reduced[0], count);
    }
    if (const int64_t period = in && !o.maker ? period_of(sizes, o.reduced) : 0; period > 0 && count > period) {
      stage(o, base, buffer, first, period, true);
      return repeat(buffer, period * width, count * width);
    }
    SmallVec<int64_t, 8> at(nd);
    int64_t rest = first;
    char* p = base;
    for (size_t d = nd; d-- > 0;) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
      p += at[d] * o.reduced[d];
    }
    const size_t turned = in && lies_ready(o) && o.reduced[nd - 1] != 0 ? turned_dim(l_, o) : 0;
    const bool tiny = in && sizes[nd - 1] <= kTinyRun && !o.maker;
    const bool runs = in && lies_ready(o) && o.reduced[nd - 1] == width;  // elements as they are
    while (count > 0) {
      const int64_t run = std::min(count, sizes[nd - 1] - at[nd - 1]);
      size_t moved = nd - 1;  // that dim and those behind it are done, up to where the first of them is
      int64_t block = 1;
      bool begins = turned > 0;
      for (size_t d = turned; d < nd && begins; ++d) block *= sizes[d], begins = at[d] == 0;
      // Neighbours in memory belong to different blocks: many of these at a time.
      const int64_t many = begins ? std::min(count / block, sizes[turned - 1] - at[turned - 1]) : 0;
      const bool at_once = (tiny || runs) && many <= 1 && at[nd - 1] == 0;
      const int64_t few = at_once ? std::min(count / run, sizes[nd - 2] - at[nd - 2]) : 0;
      if (many > 1) {
        turn_blocks(l_, o, p, turned, block, buffer, many);
        moved = turned - 1;
        p += many * width;
        at[moved] += many;
      } else if (few > 1) {  // run by run, or column by column
        moved = nd - 2;
        if (runs) move_rows(run * width, p, o.reduced[moved], buffer, run * width, few);
        for (int64_t k = 0; k < run && !runs; ++k)
          take(o, p + k * o.reduced[nd - 1], o.reduced[moved], buffer + k * width, run * width, few);
        p += few * o.reduced[moved];
        at[moved] += few;
      } else {
        in ? take(o, p, o.reduced[nd - 1], buffer, width, run) : cast(buffer, width, p, o.reduced[nd - 1], run);
        p += run * o.reduced[nd - 1];
        at[moved] += run;
      }
      const int64_t done = many > 1 ? many * block : few > 1 ? few * run : run;
      buffer += done * width;
      count -= done;
      if (count == 0) return;
      if (at[moved] < sizes[moved]) continue;
      p -= at[moved] * o.reduced[moved];
      at[moved] = 0;
      for (size_t d = moved; d-- > 0;) {
        p += o.reduced[d];
        if (++at[d] < sizes[d]) break;
        p -= sizes[d] * o.reduced[d];
        at[d] = 0;
      }
    }
  }

  // Gathers or scatters `count` neighbouring rows at once: a transpose for each run of the innermost reduced dim.
  void stage_tile(const RowOperand& o, char* base, char* buffer, int64_t count, int64_t row_bytes, bool in) const {
    if (interleaved_) return stage_interleaved(o, l_.reduced_sizes, base, buffer, count, in);
    const CastFn cast = cast_fn(o.kernel, o.dtype);
    const int64_t width = itemsize(o.kernel), step = o.kept.back();
    const DimVec& sizes = l_.reduced_sizes;
    const size_t nd = sizes.size();
    const bool plain = lies_ready(o) && step == width;
    const int64_t run = plain && nd > 0 ? sizes[nd - 1] : 1, apart = nd > 0 ? o.reduced[nd - 1] : 0;
    SmallVec<int64_t, 8> at(nd);
    char* p = base;
    for (int64_t i = 0; i < n_; i += run) {
      char* staged = buffer + i * width;
      if (plain && in)
        transpose(width, p, apart, staged, row_bytes, run, count);
      else if (plain)
        transpose(width, staged, row_bytes, p, apart, count, run);
      else if (in)
        take(o, p, step, staged, row_bytes, count);
      else
        cast(staged, row_bytes, p, step, count);
      // A whole run leaves the innermost dim where it began.
      for (size_t d = plain && nd > 0 ? nd - 1 : nd; d-- > 0;) {
        p += o.reduced[d];
        if (++at[d] < sizes[d]) break;
        p -= sizes[d] * o.reduced[d];
        at[d] = 0;
      }
    }
  }

  // From one pass on up to the next that reduces, or the last one: what they hand on is read before anything is folded.
  int end_of_run(int pass) const {
    while (pass + 1 < e_.passes && e_.pass[pass].elementwise && e_.pass[pass].reductions == 0) ++pass;
    return pass;
  }

  // All passes of one row whose operands are at `ptr`.
  void run_passes(char* const* ptr, char* const* scratch, int32_t* status, const int64_t* next = nullptr) const {
    alignas(16) Value reduced[kMaxReductions];
    int64_t parts = std::max<int64_t>((n_ + kPart - 1) / kPart, 1);
    int done = 0;
    for (int k = 0; k < e_.passes; ++k) {
      const int first = std::exchange(k, end_of_run(k));
      const StrataRowPass& pass = e_.pass[k];
      if (n_ == 0 && (pass.reductions || pass.elementwise)) {
        for (int r = 0; r < pass.reductions; ++r) reduced[done + r] = identity(e_.reduction[done + r]);
        done += pass.reductions;
        continue;
      }
      const bool whole = pass.reductions == 0 && !pass.elementwise;
      if (whole || parts == 1) {
        StrataRowArgs a{ptr, l_.params, reduced, scratch, reduced + done, whole ? 1 : n_, 0, n_, status, next};
        for (int q = first; q <= k; ++q) call(q, a);
      } else {
        std::vector<Value> partial(parts * std::max<int>(pass.reductions, 1));
        for (int64_t p = 0; p < parts; ++p) {
          char *at[kMaxRowOperands], *kept[kMaxRowOperands];
          advance(ptr, scratch, p, at, kept);
          Value raw[kMaxReductions];
          StrataRowArgs a{at, l_.params, reduced, kept, raw, std::min(kPart, n_ - p * kPart), p * kPart, n_, status};
          for (int q = first; q <= k; ++q) call(q, a);
          for (int r = 0; r < pass.reductions; ++r) partial[r * parts + p] = raw[r];
        }
        for (int r = 0; r < pass.reductions; ++r)
          reduced[done + r] = fold(e_.reduction[done + r], &partial[r * parts], parts);
      }
      done += pass.reductions;
    }
  }

  void advance(char* const* ptr, char* const* scratch, int64_t part, char** at, char** kept) const {
    for (size_t i = 0; i < l_.operands.size(); ++i)
      at[i] = one_place(i) ? ptr[i] : ptr[i] + part * kPart * itemsize(l_.operands[i].kernel);
    temporaries().advance(scratch, part * kPart, kept);
  }

  // Its pointer is the same for all parts of a row.
  bool one_place(size_t i) const { return l_.operands[i].per_row || runs_.spreads(i); }

  RowScratch temporaries() const { return {e_, n_, itemsize(l_.compute)}; }
  // The row of the first operand that is read where it lies.
  const char* like(int64_t row) const {
    for (size_t i = size_t(e_.outputs); i < l_.operands.size(); ++i)
      if (direct_[i] && !one_place(i)) return row_base(l_.operands[i], row);
    return nullptr;
  }

  void run_rows(int64_t begin, int64_t end, int64_t tile, Workspace& space, int32_t* status) const {
    int count = int(l_.operands.size());
    // Rows of a tile start a line apart from a power of two, so that they do not meet in one set of the cache.
    const int64_t spaced = row_bytes() + 64;
    const int64_t tiles = (spaced * tile + 64) * count;
    char* memory = space.get(tiles + temporaries().bytes(0, e_.scratch_rows));
    char* scratch[kMaxRowOperands];
    temporaries().place(memory + tiles, like(begin), 0, e_.scratch_rows, scratch);
    const int64_t stride = interleaved_ ? n_ * itemsize(l_.compute) : spaced;
    if (in_place_) return run_in_place(begin, end, scratch, status);
    for (int64_t row = begin; row < end;) {
      int64_t here = 1;
      if (tile > 1) here = std::min({tile, end - row, l_.kept_sizes.back() - row % l_.kept_sizes.back()});
      char* bases[kMaxRowOperands];
      for (int i = 0; i < count; ++i) {
        const RowOperand& o = l_.operands[i];
        bases[i] = row_base(o, row);
        if (o.per_row || direct_[i] || o.output) continue;
        char* buffer = memory + stride * tile * i;
        if (here > 1)
          stage_tile(o, bases[i], buffer, here, stride, true);
        else
          stage(o, bases[i], buffer, 0, n_, true);
      }
      for (int64_t j = 0; j < here; ++j) {
        char* ptr[kMaxRowOperands];
        alignas(16) Value single[kMaxRowOperands];
        for (int i = 0; i < count; ++i) {
          const RowOperand& o = l_.operands[i];
          char* base = j == 0 ? bases[i] : bases[i] + j * o.kept.back();
          if (o.per_row) {
            ptr[i] = lies_ready(o) ? base : single[i].bytes;
            if (!lies_ready(o) && !o.output) take(o, base, 0, ptr[i], 16, 1);
          } else {
            ptr[i] = direct_[i] ? base : memory + stride * (tile * i + j);
          }
        }
        run_passes(ptr, scratch, status);
        for (int i = 0; i < e_.outputs; ++i) {
          const RowOperand& o = l_.operands[i];
          if (o.per_row && o.dtype != o.kernel)
            cast_fn(o.kernel, o.dtype)(single[i].bytes, 0, j == 0 ? bases[i] : bases[i] + j * o.kept.back(), 0, 1);
        }
      }
      for (int i = 0; i < e_.outputs; ++i) {
        const RowOperand& o = l_.operands[i];
        if (o.per_row || direct_[i]) continue;
        char* buffer = memory + stride * tile * i;
        if (here > 1)
          stage_tile(o, bases[i], buffer, here, stride, false);
        else
          stage(o, bases[i], buffer, 0, n_, false);
      }
      row += here;
    }
  }

  // All operands where they are: line after line of rows at one distance from each other.
  void run_in_place(int64_t begin, int64_t end, char* const* scratch, int32_t* status) const {
    const int64_t line = l_.kept_sizes.empty() ? 1 : l_.kept_sizes.back();
    for (int64_t next; begin < end; begin = next)
      run_line(begin, next = std::min(end, begin - begin % line + line), scratch, status);
  }

  void run_line(int64_t begin, int64_t end, char* const* scratch, int32_t* status) const {
    size_t count = l_.operands.size();
    char* ptr[kMaxRowOperands];
    int64_t step[kMaxRowOperands];
    for (size_t i = 0; i < count; ++i)
      step[i] = l_.operands[i].kept.empty() ? 0 : l_.operands[i].kept.back(), ptr[i] = row_base(l_.operands[i], begin);
    const StrataRowPass* pass = e_.pass;
    const bool one_value = e_.passes == 2 && pass[0].reductions > 0 && !pass[0].elementwise &&  //
                           pass[1].reductions == 0 && !pass[1].elementwise;
    if (one_value && n_ > 0 && n_ <= kPart) {
      // Sums, maxima, norms: rows short enough that a loop over passes would show. The second pass is for many of them.
      constexpr int64_t kTogether = 32;
      const int64_t apart = reduced_bytes(e_);
      bool side_by_side = true;
      for (size_t i = 0; i < count; ++i)
        side_by_side &= !l_.operands[i].per_row || step[i] == itemsize(l_.operands[i].kernel);
      alignas(16) Value reduced[kTogether * kMaxReductions];
      char* made[kMaxRowOperands];
      while (begin < end) {
        const int64_t rows = side_by_side ? std::min(kTogether, end - begin) : 1;
        std::copy_n(ptr, count, made);
        char* to = reduced[0].bytes;
        for (int64_t row = 0; row < rows; ++row, to += apart) {
          const StrataRowArgs part{ptr, l_.params, reduced, scratch, to, n_, 0, n_, status};
          call(0, part);
          for (size_t i = 0; i < count; ++i) ptr[i] += step[i];
        }
        const StrataRowArgs whole{made, l_.params, reduced, scratch, nullptr, rows, 0, n_, status};
        pass[1].fn(&whole);
        begin += rows;
      }
      return;
    }
    for (int64_t row = begin; row < end; ++row) {
      run_passes(ptr, scratch, status, step);
      for (size_t i = 0; i < count; ++i) ptr[i] += step[i];
    }
  }

  // Few rows of many elements: the parts of a row are divided among the threads.
  void run_long(int64_t row) {
    int count = int(l_.operands.size());
    int64_t parts = (n_ + kPart - 1) / kPart;
    alignas(16) Value reduced[kMaxReductions];
    const RowScratch t = temporaries();
    std::unique_ptr<char[]> lasting(new char[t.bytes(0, t.lasting())]);
    char* scratch[kMaxRowOperands] = {};
    t.place(lasting.get(), like(row), 0, t.lasting(), scratch);
    alignas(16) Value single[kMaxRowOperands];
    char* bases[kMaxRowOperands];
    for (int i = 0; i < count; ++i) {
      const RowOperand& o = l_.operands[i];
      bases[i] = row_base(o, row);
      if (o.per_row && !lies_ready(o) && !o.output) take(o, bases[i], 0, single[i].bytes, 16, 1);
    }
    int done = 0;
    for (int k = 0; k < e_.passes; ++k) {
      const int begins = std::exchange(k, end_of_run(k));
      const StrataRowPass& pass = e_.pass[k];
      bool whole = pass.reductions == 0 && !pass.elementwise;
      int64_t pieces = whole ? 1 : parts;
      std::vector<Value> partial(pieces * std::max<int>(pass.reductions, 1));
      // What is gathered across memory is gathered for some parts at a time, since those share lines and pages.
      const int64_t together =
          in_place_ || whole ? 1 : std::min<int64_t>(4, (parts + num_threads() - 1) / num_threads());
      int64_t done_parts = 0;
      if (begins == 0 && !in_place_) {
        const TurnedRow turned(l_, bases);
        done_parts = turned.parts();
        if (done_parts > 0) turned.run(partial.data());
      }
      parallel_for(0, (pieces - done_parts + together - 1) / together, 1, [&](int64_t begin, int64_t end) {
        Workspace& space = part_workspace();
        int32_t status = 0;
        for (int64_t group = begin; group < end; ++group) {
          const int64_t from = done_parts + group * together;
          const int64_t start = from * kPart, all = whole ? 1 : std::min(together * kPart, n_ - start);
          const int64_t room = together * kPart * 16 + 64;
          char* memory = space.get(count * room + t.bytes(t.lasting(), t.all()));
          char* own[kMaxRowOperands];
          for (int i = 0; i < count; ++i) {
            const RowOperand& o = l_.operands[i];
            own[i] = memory + i * room;
            if (!o.per_row && !direct_[i] && !o.output && !whole) stage(o, bases[i], own[i], start, all, true);
          }
          for (int64_t p = from; p < std::min(pieces, from + together); ++p) {
            const int64_t first = p * kPart, here = whole ? 1 : std::min(kPart, n_ - first);
            char* ptr[kMaxRowOperands];
            char* kept[kMaxRowOperands];
            for (int i = 0; i < count; ++i) {
              const RowOperand& o = l_.operands[i];
              ptr[i] =
                  direct_[i] ? bases[i] + first * itemsize(o.kernel) : own[i] + (first - start) * itemsize(o.kernel);
              if (o.per_row) ptr[i] = lies_ready(o) ? bases[i] : single[i].bytes;
              if (runs_.spreads(size_t(i))) ptr[i] = bases[i];
            }
            t.advance(scratch, first, kept);
            t.place(memory + count * room, like(row), t.lasting(), t.all(), kept);
            Value raw[kMaxReductions];
            StrataRowArgs a{ptr, l_.params, reduced, kept, raw, here, first, n_, &status};
            for (int q = begins; q <= k; ++q) call(q, a);
            for (int r = 0; r < pass.reductions; ++r) partial[r * pieces + p] = raw[r];
          }
          for (int i = 0; i < e_.outputs && pass.elementwise && k + 1 == e_.passes; ++i) {
            const RowOperand& o = l_.operands[i];
            if (!o.per_row && !direct_[i]) stage(o, bases[i], own[i], start, all, false);
          }
        }
        if (status) status_.fetch_or(status);
      });
      for (int r = 0; r < pass.reductions; ++r)
        reduced[done + r] = fold(e_.reduction[done + r], &partial[r * pieces], pieces);
      done += pass.reductions;
    }
    for (int i = 0; i < e_.outputs; ++i) {
      const RowOperand& o = l_.operands[i];
      if (o.per_row && o.dtype != o.kernel) cast_fn(o.kernel, o.dtype)(single[i].bytes, 0, bases[i], 0, 1);
    }
  }

  RowsLoop& l_;
  const StrataKernelEntry& e_;
  int64_t n_, rows_;
  std::vector<bool> direct_;
  std::atomic<int32_t> status_{0};
  Extrema extrema_;
  RowRuns runs_;
  bool in_place_ = true;  // nothing has to be gathered or converted
  bool interleaved_;      // all that has to be gathered, without a conversion
};

}  // namespace

int32_t RowsLoop::run() {
  if (std::optional<RowsLoop> sorted = extremum_as_it_lies()) {
    const int32_t status = sorted->run();
    if (status || !gives_zero()) return status;
  }
  GatheredRows gathered(*this);
  int32_t status = 0;
  if (entry->sets_status || !(reduce_columns(*this) || run_across(*this) || run_long(*this) || join_pieces(*this)))
    status = Runner(*this).run();
  gathered.give();
  return status;
}

}  // namespace strata::eager
