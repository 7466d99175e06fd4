#include "run/loop/rows_across.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/parallel.h"
#include "run/loop/across_fold.h"
#include "run/loop/cast.h"
#include "run/loop/rows_fold.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int64_t kBlock = 16;              // columns that a kernel takes at a time
constexpr int64_t kTileBytes = 24 << 10;    // of a tile's own memory: it stays in the first-level cache
constexpr int64_t kOuterBytes = 128 << 10;  // or in the second,
constexpr int64_t kLines = 64;              // where it has that many columns only
constexpr int64_t kWidest = 1024;           // columns of a tile
constexpr int64_t kFew = 256;               // elements that take less time than a tile of their own

int64_t blocks(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t width_of(const StrataKernelEntry& e, int reduction) {
  return itemsize(static_cast<DType>(e.reduction[reduction].accumulator));
}

DType compute_of(const StrataKernelEntry& e) { return traits(static_cast<DType>(e.dtype)).compute; }

class Across {
 public:
  explicit Across(RowsLoop& l) : l_(l), e_(*l.entry), count_(l.operands.size()) {}

  bool fit() {
    if (l_.kept_sizes.empty() || l_.reduced_sizes.empty()) return false;
    if (!has_across(e_)) return false;
    for (int64_t n : l_.reduced_sizes) n_ *= n;
    if (n_ < 1 || n_ > kLongestAcross) return false;
    if (std::ranges::any_of(l_.operands, [](const RowOperand& o) { return o.maker; })) return false;
    if (!choose_columns()) return false;
    inner_ = l_.kept_sizes.back();
    for (size_t d = 0; d + 1 < l_.kept_sizes.size(); ++d) outer_ *= l_.kept_sizes[d];
    several_ = inner_ < kBlock || inner_ * n_ < kFew;
    return inner_ * outer_ >= kBlock;
  }

  void run() {
    int64_t each = 0;  // of a tile's own memory, for one column
    for (const RowOperand& o : l_.operands)
      if (!o.per_row && (several_ || !lies_ready(o))) each += n_ * itemsize(o.kernel);
    each += e_.scratch_rows * n_ * itemsize(l_.compute);
    for (int p = 0, done = 0; p < e_.passes; done += e_.pass[p++].reductions)
      for (int r = 0; r < e_.pass[p].reductions; ++r) each += n_ * width_of(e_, done + r) / e_.passes;
    const auto fit = [&](int64_t bytes) { return bytes / (each + 1) / kBlock * kBlock; };
    // Where columns are only read, whole lines of memory are worth more than the nearer cache.
    const bool reads = std::ranges::none_of(l_.operands, [](const RowOperand& o) { return o.output && !o.per_row; });
    const int64_t near = fit(kTileBytes), outer = std::min(fit(kOuterBytes), kLines);
    const int64_t widest = std::clamp<int64_t>(reads && near < 2 * kBlock ? outer : near, kBlock, kWidest);
    const bool several = several_ && inner_ <= widest;
    const int64_t lines = several ? std::max<int64_t>(1, widest / inner_) : 1;  // a tile has whole ones then
    const int64_t tile = several ? inner_ : std::min(widest, inner_ / kBlock * kBlock);
    const int64_t tiles = (inner_ + tile - 1) / tile, tasks = (outer_ + lines - 1) / lines * tiles;
    const int64_t grain = std::max<int64_t>(1, 16384 / (n_ * tile * lines));
    parallel_for(0, tasks, grain, [&](int64_t begin, int64_t end) {
      static thread_local Workspace space;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t line = i / tiles * lines, first = i % tiles * tile;
        run_tile({line, std::min(lines, outer_ - line), first, std::min(tile, inner_ - first)}, space);
      }
    });
  }

 private:
  // Columns first, first + 1 ... of some lines, which are the indices of all kept dims but the last.
  struct Tile {
    int64_t line, lines, first, columns;
  };

  // As the kernel takes it, but for the number of columns.
  bool lies_ready(const RowOperand& o) const {
    return o.dtype == o.kernel && o.kept.back() == itemsize(o.kernel) && (o.per_row || l_.reduced_sizes.size() == 1);
  }

  // A kept dim along which an input lies becomes the last one; or else the one of some columns that lie nearest to each
  // other, or the longest. Where elements have to be moved, rows must be short.
  bool choose_columns() {
    const size_t last = l_.kept_sizes.size() - 1;
    size_t found = last;
    bool lies = false;
    const auto input = std::find_if(l_.operands.begin() + e_.outputs, l_.operands.end(),
                                    [](const RowOperand& o) { return !o.per_row; });
    for (size_t d = 0; d <= last; ++d) {
      const int64_t n = l_.kept_sizes[d], best = l_.kept_sizes[found];
      const bool nearer =
          input != l_.operands.end() && n >= kBlock && std::abs(input->kept[d]) < std::abs(input->kept[found]);
      if (best < kBlock ? n > best : nearer) found = d;
    }
    for (size_t i = e_.outputs; i < count_ && !lies; ++i)
      for (size_t d = 0; d <= last && !lies; ++d) {
        const RowOperand& o = l_.operands[i];
        lies = !o.per_row && o.kept[d] == itemsize(o.dtype) && l_.kept_sizes[d] > 1;
        if (lies) found = d;
      }
    if (n_ > turned_over() && !(lies && l_.kept_sizes[found] >= kBlock)) return false;
    l_.columns_along(found);
    return true;
  }

  // Elements of a row up to which it is turned over.
  int64_t turned_over() const {
    const bool extremum = e_.reductions && (e_.reduction[0].combine == STRATA_COMBINE_MAX ||
                                            e_.reduction[0].combine == STRATA_COMBINE_MIN);
    RowWork work{e_.reductions, extremum, 0, false};
    for (const RowOperand& o : l_.operands)
      if (!o.per_row) work.add(o.kept, o.reduced);
    return short_across(work);
  }

  // `n` runs of `bytes`.
  static void move(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n, int64_t bytes) {
    auto each = [&](auto size) {
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, size_t(size));
    };
    if (bytes == 32) return each(std::integral_constant<int64_t, 32>());
    if (bytes == 16) return each(std::integral_constant<int64_t, 16>());
    if (bytes == 8) return each(std::integral_constant<int64_t, 8>());
    each(bytes);
  }

  // The tile's elements from or to its own memory, `step` bytes from element to element.
  void stage(const RowOperand& o, const Tile& t, char* own, int64_t step, bool in) const {
    for (int64_t i = 0; i < t.lines; ++i, own += t.columns * itemsize(o.kernel))
      stage_line(o, l_.column_at(o, t.line + i, t.first), own, step, t.columns, in);
  }

  void stage_line(const RowOperand& o, char* base, char* own, int64_t step, int64_t count, bool in) const {
    const int64_t width = itemsize(o.kernel), column = o.kept.back();
    const CastFn cast = in ? cast_fn(o.dtype, o.kernel) : cast_fn(o.kernel, o.dtype);
    if (o.per_row) return in ? cast(base, column, own, width, count) : cast(own, width, base, column, count);
    const DimVec& sizes = l_.reduced_sizes;
    const int64_t run = sizes.back(), apart = o.reduced.back();
    const bool plain = o.dtype == o.kernel && column == width;
    const bool turned = o.dtype == o.kernel && apart == width && column > width;
    for (int64_t p = 0; p < n_; p += run) {
      char* from = base;
      int64_t rest = p / run;
      for (size_t d = sizes.size() - 1; d-- > 0; rest /= sizes[d]) from += rest % sizes[d] * o.reduced[d];
      char* to = own + p * step;
      if (plain)
        in ? move(from, apart, to, step, run, count * width) : move(to, step, from, apart, run, count * width);
      else if (turned)
        in ? transpose(width, from, column, to, step, count, run)
           : transpose(width, to, step, from, column, run, count);
      else
        for (int64_t r = 0; r < run; ++r, from += apart, to += step)
          in ? cast(from, column, to, width, count) : cast(to, width, from, column, count);
    }
  }

  void run_tile(const Tile& t, Workspace& space) const {
    const int64_t count = t.lines * t.columns, wide = blocks(count);
    const bool whole = t.lines == 1 && wide == count;
    AcrossPlaces at_hand;
    bool staged[kMaxRowOperands] = {};
    char* next = space.get(size_t(bytes(wide)));
    size_t place = 0;
    for (; place < count_; ++place) {
      const RowOperand& o = l_.operands[place];
      staged[place] = !whole || !lies_ready(o);
      if (!staged[place]) {
        at_hand.ptr[place] = l_.column_at(o, t.line, t.first);
        at_hand.step[place] = o.reduced.back();
        continue;
      }
      at_hand.step[place] = wide * itemsize(o.kernel);
      at_hand.ptr[place] = next;
      next += whole_lines(at_hand.step[place] * (o.per_row ? 1 : n_));
      if (!o.output) stage(o, t, at_hand.ptr[place], at_hand.step[place], true);
    }
    pass_across(e_, l_.params, at_hand, wide, n_, next);
    for (int i = 0; i < e_.outputs; ++i)
      if (staged[i]) stage(l_.operands[i], t, at_hand.ptr[i], at_hand.step[i], false);
  }

  // A tile's own memory, at most.
  int64_t bytes(int64_t wide) const {
    int64_t all = across_room(e_, wide, n_);
    for (const RowOperand& o : l_.operands) all += whole_lines(wide * itemsize(o.kernel) * (o.per_row ? 1 : n_));
    return all;
  }

  RowsLoop& l_;
  const StrataKernelEntry& e_;
  size_t count_;  // operands
  int64_t n_ = 1, inner_ = 0, outer_ = 1;
  bool several_ = false;  // lines are short: a tile has several
};

}  // namespace

bool has_across(const StrataKernelEntry& e) {
  return std::all_of(e.pass, e.pass + e.passes, [](const StrataRowPass& p) { return p.across || p.plain; });
}

int64_t across_room(const StrataKernelEntry& e, int64_t columns, int64_t n) {
  int64_t all = e.scratch_rows * whole_lines(n * columns * itemsize(compute_of(e)));
  for (int r = 0; r < e.reductions; ++r)
    all += 2 * whole_lines(columns * 8) + whole_lines(n * columns * width_of(e, r));
  return all;
}

void pass_across(const StrataKernelEntry& e, const void* params, AcrossPlaces& at_hand, int64_t columns, int64_t n,
                 char* room) {
  size_t place = size_t(e.outputs) + e.inputs;
  auto take = [&](int64_t bytes) {
    char* p = room;
    room += whole_lines(bytes);
    return p;
  };
  for (int s = 0; s < e.scratch_rows; ++s, ++place) {
    at_hand.step[place] = columns * itemsize(compute_of(e));
    at_hand.ptr[place] = take(n * at_hand.step[place]);
  }
  char** results = at_hand.ptr + place;
  for (int r = 0; r < e.reductions; ++r, place += 2)
    for (int part = 0; part < 2; ++part) results[2 * r + part] = take(columns * 8);
  char* values = room;
  StrataAcrossArgs args{at_hand.ptr, at_hand.step, params, columns, n, 0, n};
  for (int p = 0, done = 0; p < e.passes; done += e.pass[p++].reductions) {
    const StrataRowPass& pass = e.pass[p];
    room = values;
    char* runs[AcrossPlaces::kMost];
    for (int r = 0; r < pass.reductions; ++r) {
      const int64_t step = columns * width_of(e, done + r);
      runs[r] = take(n * step);
      if (!pass.plain) at_hand.ptr[place + size_t(r)] = runs[r], at_hand.step[place + size_t(r)] = step;
    }
    if (pass.across) pass.across(&args);
    for (int r = 0; r < pass.reductions; ++r) {
      const size_t from = pass.plain ? size_t(e.outputs + pass.plain - 1) : place + size_t(r);
      char** to = results + 2 * (done + r);
      fold_columns(e.reduction[done + r], at_hand.ptr[from], at_hand.step[from], n, columns, runs[r], to[0], to[1]);
    }
  }
}

bool run_across(RowsLoop& loop) { return runs_as<Across>(loop); }

}  // namespace strata::eager
