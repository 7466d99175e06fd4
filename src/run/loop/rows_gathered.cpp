#include "run/loop/rows_gathered.h"

#include <algorithm>

#include "run/loop/copy_strided.h"
#include "run/loop/rows_across.h"
#include "run/loop/rows_interleaved.h"

namespace strata::eager {

namespace {

constexpr int64_t kFewElements = 256;  // of an operand, which are staged in less time than memory is asked for
constexpr int64_t kLongRun = 32;       // elements next to each other that are worth a call for them
constexpr int64_t kTurned = 8;         // of those that are turned over with others
constexpr int64_t kColumns = 16;       // side by side, which a kernel takes at a time
constexpr int64_t kFewOfLine = 128;    // elements of one line of columns that are worth a call
constexpr int64_t kShortRow = 64;      // elements of a row whose call takes longer than what it does,
constexpr int64_t kCallOfRow = 24;     // as long as to move so many

int64_t count_dims(const DimVec& sizes) {
  return std::ranges::count_if(sizes, [](int64_t n) { return n != 1; });
}

bool repeats(const DimVec& sizes, const DimVec& strides) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (strides[d] == 0 && sizes[d] != 1) return true;
  return false;
}

// How rows may lie: `near` < 0: one after the other, or side by side along that kept dim; kAll: along all of them.
constexpr int kRows = -1, kAll = -2;

struct Layout {
  int near;
  int64_t cost;  // of what has to be moved, in elements that are read and written in order
};

class Layouts {
 public:
  explicit Layouts(const RowsLoop& l)
      : l_(l),
        rows_(product(l.kept_sizes)),
        n_(product(l.reduced_sizes)),
        kept_(count_dims(l.kept_sizes)),
        reduced_(count_dims(l.reduced_sizes)) {}

  int64_t elements_of(const RowOperand& o) const { return o.per_row ? rows_ : rows_ * n_; }

  // The cheapest; of cost 0 where the loop takes all operands as they are.
  Layout best() const {
    if (few_columns()) return {kAll, cost(kAll)};
    if (lines_of_few()) return {kRows, 0};
    if (reduced_ <= 1 && (kept_ <= 1 || n_ > kLongestAcross)) return {kRows, 0};
    if (!one_pass() && reduced_ > 1 && n_ < kShortRow) return {kRows, 0};
    Layout best{kRows, cost(kRows)};
    if (best.cost == 0) return best;
    if (n_ < kShortRow) best.cost += rows_ * kCallOfRow;
    for (int near = kAll; near < int(l_.kept_sizes.size()) && best.cost > 0; ++near) {
      if (near == kRows || (near == kAll && kept_ == 0) || (near >= 0 && !wide(size_t(near)))) continue;
      const int64_t c = cost(near);
      if (c == 0 || (c < best.cost && (one_pass() || reduced_ <= 1))) best = {near, c};
    }
    return best;
  }

  bool moves(const RowOperand& o, int near) const {
    const int64_t width = itemsize(o.dtype);
    const bool kept_as_one = near == kAll || (near == kRows && n_ < kLongRun);
    if (o.per_row && near >= 0) return n_ < kColumns && o.kept[size_t(near)] > width;
    if (o.per_row) return kept_as_one && kept_ > 1 && !follow_each_other(l_.kept_sizes, o.kept, width);
    if (o.maker || repeats(l_.kept_sizes, o.kept) || repeats(l_.reduced_sizes, o.reduced)) return false;
    if (near == kRows) {
      if (follow_each_other(l_.reduced_sizes, o.reduced, width))
        return kept_as_one && kept_ > 1 && !follow_each_other(l_.kept_sizes, o.kept, n_ * width);
      if (o.reduced.back() == width) return l_.reduced_sizes.back() < kLongRun;
      // A whole tensor that several passes read is turned over once, not by each.
      return reduced_ <= 1 || (one_pass() ? !turned(o, width) : kept_ == 0);
    }
    const bool side_by_side =
        near == kAll ? follow_each_other(l_.kept_sizes, o.kept, width) : o.kept[size_t(near)] == width;
    return !side_by_side || reduced_ > 1 || (few_columns() && o.reduced.back() != rows_ * width);
  }

 private:
  // Columns that are worth a call of their own.
  bool wide(size_t dim) const {
    const int64_t n = l_.kept_sizes[dim];
    return n >= kColumns && (kept_ == 1 || n * n_ >= kFewOfLine);
  }

  // A sum over columns that are fewer than a kernel takes at a time, side by side: without gaps between their lines
  // they are one run (rows_columns.h).
  bool few_columns() const {
    if (!one_pass() || reduced_ != 1 || kept_ != 1 || rows_ >= kColumns || n_ <= kLongestAcross) return false;
    return std::ranges::all_of(l_.operands, [&](const RowOperand& o) {
      return o.per_row || follow_each_other(l_.kept_sizes, o.kept, itemsize(o.dtype));
    });
  }

  // The same of many lines, each with its own rows: the parts of complex numbers, for one. Three columns make no whole
  // registers, and sums of few positions wait for each other.
  bool lines_of_few() const {
    if (!one_pass() || reduced_ != 1 || kept_ < 2 || l_.entry->reductions != 1) return false;
    const int64_t columns = l_.kept_sizes.back();
    const bool sum = l_.entry->reduction[0].combine <= STRATA_COMBINE_MUL;
    if (columns >= kColumns || n_ < (columns < 4 ? 2 : 1) * kShortRow || (columns == 3 && sum)) return false;
    return std::ranges::all_of(l_.operands, [&](const RowOperand& o) {
      const int64_t width = itemsize(o.dtype);
      return o.per_row || (o.dtype == o.kernel && o.kept.back() == width && o.reduced.back() == columns * width);
    });
  }

  bool one_pass() const { return l_.entry->passes <= 2; }

  // Whether elements along another reduced dim than the last one lie next to each other: these are turned over.
  bool turned(const RowOperand& o, int64_t width) const {
    for (size_t d = 0; d + 1 < o.reduced.size(); ++d)
      if (o.reduced[d] == width && l_.reduced_sizes[d] >= kTurned) return true;
    return false;
  }

  int64_t cost(int near) const {
    int64_t all = 0;
    for (const RowOperand& o : l_.operands) {
      if (!moves(o, near)) continue;
      const bool along_kept = near == kAll || reduced_ == 0;
      const int64_t step = near >= 0 ? o.kept[size_t(near)] : along_kept ? o.kept.back() : o.reduced.back();
      const bool in_order = step == itemsize(o.dtype);
      // Elements that are not read in order take half as long again; results too, which are written twice.
      all += elements_of(o) * (in_order ? 2 : 3) * (o.output ? 3 : 2) / 4;
    }
    if (all == 0 || near != kRows || n_ < kLongRun) return all;
    std::vector<bool> whole;
    for (const RowOperand& o : l_.operands) whole.push_back(o.per_row || !moves(o, near));
    return rows_interleaved(l_, whole) ? 0 : all;
  }

  const RowsLoop& l_;
  int64_t rows_, n_;
  int64_t kept_, reduced_;  // dims of several elements
};

// As the kernel takes it, in the order of the dims.
void lay_out(const RowsLoop& l, RowOperand& o, int near, char* base) {
  o.base = base;
  o.dtype = o.kernel;
  int64_t step = itemsize(o.kernel);
  const auto put = [&](int64_t& stride, int64_t size) {
    stride = step;
    step *= size;
  };
  const auto put_kept = [&] {
    for (size_t d = l.kept_sizes.size(); d-- > 0;)
      if (int(d) != near) put(o.kept[d], l.kept_sizes[d]);
  };
  if (near >= 0) put(o.kept[size_t(near)], l.kept_sizes[size_t(near)]);
  if (near == kAll) put_kept();
  for (size_t d = o.per_row ? 0 : l.reduced_sizes.size(); d-- > 0;) put(o.reduced[d], l.reduced_sizes[d]);
  if (near != kAll) put_kept();
}

DimVec joined(const DimVec& kept, const DimVec& reduced) {
  DimVec all = kept;
  for (int64_t s : reduced) all.push_back(s);
  return all;
}

}  // namespace

GatheredRows::GatheredRows(RowsLoop& l) {
  if (product(l.kept_sizes) * product(l.reduced_sizes) < kFewElements) return;
  spread(l);
  Layout best = Layouts(l).best();
  if (best.cost == 0) return;
  // Rows in the order of memory, or of the results.
  RowsLoop as_results = l;
  as_results.kept_as(0);
  if (const Layout other = Layouts(as_results).best(); other.cost < best.cost) {
    best = other;
    l.kept_as(0);
  }
  best.cost > 0 ? gather(l, best.near) : l.merge_dims();
}

void GatheredRows::spread(RowsLoop& l) {
  const size_t dims = l.kept_sizes.size();
  if (dims == 0 || product(l.reduced_sizes) < kOften) return;
  // Of one line the last pass is for many rows at a time where their values follow each other.
  const StrataRowPass& last = l.entry->pass[l.entry->passes - 1];
  if (dims == 1 ? l.entry->passes != 2 || last.elementwise || last.reductions : l.kept_dims_of_rows() == dims) return;
  const auto lies = [&](const RowOperand& o) {
    return !o.per_row || follow_each_other(l.kept_sizes, o.kept, itemsize(o.kernel));
  };
  const auto inputs = std::ranges::subrange(l.operands.begin() + l.entry->outputs, l.operands.end());
  if (std::ranges::all_of(inputs, lies)) return;
  const auto room = [&](const RowOperand& o) {
    return CallMemory::rounded(product(l.kept_sizes) * itemsize(o.kernel));
  };
  int64_t bytes = 0;
  for (const RowOperand& o : inputs) bytes += lies(o) ? 0 : room(o);
  per_row_.emplace(bytes);
  sizes_ = l.kept_sizes;
  for (RowOperand& o : inputs) {
    if (lies(o)) continue;
    const RowOperand there = o;
    lay_out(l, o, kAll, per_row_->take(room(o)));
    copy(there, o);
  }
  l.merge_dims();
}

void GatheredRows::gather(RowsLoop& l, int near) {
  const Layouts layouts(l);
  const auto room = [&](const RowOperand& o) {
    return CallMemory::rounded(layouts.elements_of(o) * itemsize(o.kernel));
  };
  sizes_ = joined(l.kept_sizes, l.reduced_sizes);
  int64_t bytes = 0;
  bool moves[kMaxRowOperands] = {};
  for (size_t i = 0; i < l.operands.size(); ++i)
    if ((moves[i] = layouts.moves(l.operands[i], near))) bytes += room(l.operands[i]);
  memory_.emplace(bytes);
  for (size_t i = 0; i < l.operands.size(); ++i) {
    if (!moves[i]) continue;
    RowOperand& o = l.operands[i];
    const RowOperand there = o;
    lay_out(l, o, near, memory_->take(room(o)));
    if (o.output)
      results_.push_back({o, there});
    else
      copy(there, o);
  }
  l.merge_dims();
}

void GatheredRows::copy(const RowOperand& from, const RowOperand& to) const {
  DimVec sizes = sizes_;
  if (from.per_row) sizes.resize(from.kept.size());
  copy_strided(from.dtype, from.base, joined(from.kept, from.per_row ? DimVec() : from.reduced), to.dtype, to.base,
               joined(to.kept, to.per_row ? DimVec() : to.reduced), sizes);
}

void GatheredRows::give() {
  for (const Result& r : results_) copy(r.own, r.there);
}

}  // namespace strata::eager
