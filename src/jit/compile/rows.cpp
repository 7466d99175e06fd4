#include "jit/compile/rows.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "run/isa.h"
#include "run/loop/pointwise_loop.h"
#include "run/loop/rows_across.h"
#include "run/loop/rows_columns.h"
#include "run/loop/rows_fold.h"
#include "run/loop/rows_gathered.h"

namespace strata::jit {

namespace {

constexpr int64_t kVector = 16;
constexpr int64_t kManyTruths = 256;                   // of a row, that are worth writing for it
constexpr int64_t kSoonOver = 256, kCached = 1 << 20;  // elements of a row, and of all
constexpr int64_t kGathered = 1024, kFewRows = 16;     // elements of all, and rows, that are gathered without a thought
constexpr int64_t kFewTogether = 256;                  // elements of short rows that all operands walk in one step
constexpr int64_t kManyRows = 64;                      // so many go in vectors, whatever is left behind the last one
constexpr int64_t kLongRow = 4096, kLongPiece = 512;   // elements
constexpr int64_t kShortLine = 64, kLongLine = 256;    // columns of a line
constexpr int64_t kFewValues = 16, kWorth = 128;  // nodes of one lane, and elements that take as long as one of them

bool is_reduced(const Fused& f, size_t dim) {
  return std::find(f.reduced.begin(), f.reduced.end(), int64_t(dim)) != f.reduced.end();
}

// The dim along which they lie side by side, or -1.
int columns_dim(const Fused& f) {
  for (const auto* list : {&f.outs, &f.ins})
    for (const FusedOperand& o : *list)
      for (size_t d = 0; d < f.shape.size(); ++d)
        if (!o.per_row && !is_reduced(f, d) && f.shape[d] > 1 && o.strides[d] == 1) return int(d);
  return -1;
}

// Whether every operand walks the columns' dim in steps of its own elements, or not at all.
bool side_by_side(const Fused& f, size_t columns) {
  for (const auto* list : {&f.outs, &f.ins})
    for (const FusedOperand& o : *list)
      if (o.strides[columns] != 0 && o.strides[columns] != 1) return false;
  return true;
}

// How many neighbouring rows all operands walk in one step, in the order in which the loops go over rows: as those of
// the first input lie in memory (run/loop/rows_dims.cpp). Inputs with one value per row follow (rows_gathered.cpp).
int64_t rows_in_step(const Fused& f, int64_t length) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < f.shape.size(); ++d)
    if (!is_reduced(f, d) && f.shape[d] > 1) dims.push_back(d);
  const auto first = std::ranges::find_if(f.ins, [](const FusedOperand& o) { return !o.per_row; });
  if (first != f.ins.end())
    std::ranges::stable_sort(dims, std::ranges::greater(), [&](size_t d) { return std::abs(first->strides[d]); });
  int64_t run = 1;
  for (size_t k = dims.size(); k-- > 0;) {
    const auto joins = [&](const FusedOperand& o) {
      return k + 1 == dims.size() || o.strides[dims[k]] == o.strides[dims[k + 1]] * f.shape[dims[k + 1]];
    };
    const auto follows = [&](const FusedOperand& o) { return (o.per_row && length >= eager::kOften) || joins(o); };
    if (!std::ranges::all_of(f.outs, joins) || !std::ranges::all_of(f.ins, follows)) break;
    run *= f.shape[dims[k]];
  }
  return run;
}

// The inputs that lack the columns' dim or the reduced one are said where the kernel for columns can take them so:
// where one dim is reduced, and a vector of columns is there.
void find_broadcasts(Fused& f, size_t columns) {
  const auto several = [&](int64_t d) { return f.shape[size_t(d)] > 1; };
  if (std::count_if(f.reduced.begin(), f.reduced.end(), several) != 1 || f.shape[columns] < kVector) return;
  for (size_t i = 0; i < f.ins.size(); ++i) {
    const int64_t step = f.ins[i].strides[columns];
    f.kernel.inputs[i].broadcast = f.ins[i].per_row ? step == 1 : step == 0;
  }
}

// Whether lines of so many columns do not follow each other in all that is reduced: a kernel for columns goes line by
// line then, where it takes many as one otherwise.
bool goes_by_lines(const Fused& f, int64_t line) {
  return std::ranges::any_of(f.kernel.passes[0].nodes, [&](const lower::Node& n) {
    if (n.op != lower::Op::Load) return false;
    const FusedOperand& o = f.ins[n.imm];
    return f.kernel.inputs[n.imm].broadcast || (!o.per_row && std::ranges::any_of(f.reduced, [&](int64_t d) {
             return f.shape[size_t(d)] > 1 && o.strides[size_t(d)] != line;
           }));
  });
}

// Whether elements of a line share a float16: its conversion, in code for one value, would be made for each vector.
bool shares_halves(const Fused& f) {
  for (size_t i = 0; i < f.ins.size(); ++i)
    if (f.kernel.inputs[i].broadcast && !f.ins[i].per_row && f.ins[i].memory.dtype == DType::F16) return true;
  return false;
}

// Whether each launch over rows makes one reduction, as far as can be told.
bool sums(const Fused& f) {
  size_t reductions = 0;
  std::vector<int> origins;
  for (const lower::Pass& p : f.kernel.passes)
    for (const lower::Reduction& r : p.reductions) ++reductions, origins.push_back(r.origin);
  std::ranges::sort(origins);
  return reductions == size_t(std::ranges::unique(origins).begin() - origins.begin());
}

// Whether all that is written are sums and products of rows.
bool only_sums(const Fused& f) {
  bool all = std::ranges::all_of(f.outs, &FusedOperand::per_row);
  for (const lower::Pass& p : f.kernel.passes)
    for (const lower::Reduction& r : p.reductions) all &= r.combine <= lower::Combine::Mul;
  return all;
}

// Elements of a row along memory that is worth turning over.
int64_t turned_over(const Fused& f) {
  size_t reductions = 0;
  bool extremum = false;
  for (const lower::Pass& p : f.kernel.passes)
    for (const lower::Reduction& r : p.reductions)
      if (reductions++ == 0) extremum = r.combine == lower::Combine::Max || r.combine == lower::Combine::Min;
  eager::RowWork work{reductions, extremum, 0, false};
  for (const auto* list : {&f.outs, &f.ins})
    for (const FusedOperand& o : *list) {
      if (o.per_row) continue;
      DimVec kept, of_row;
      for (size_t d = 0; d < f.shape.size(); ++d)
        (std::ranges::find(f.reduced, int64_t(d)) == f.reduced.end() ? kept : of_row).push_back(o.strides[d]);
      work.add(kept, of_row);
    }
  return eager::short_across(work);
}

// Whether more operands have to be turned over than by the second of two operators alone.
bool moves_more(const Fused& f) {
  std::vector<int> origins;
  for (const lower::Pass& p : f.kernel.passes)
    for (const lower::Node& n : p.nodes)
      if (n.op != lower::Op::Load && n.op != lower::Op::Scratch) origins.push_back(n.origin);
  std::ranges::sort(origins);
  const auto operators = std::ranges::unique(origins).begin() - origins.begin();
  return operators <= 2 && std::ranges::count(f.ins, false, &FusedOperand::per_row) > 1;
}

// Whether elements are computed of others than those that the reductions have read: columns of these would be read and
// written in pieces, though nothing is saved by it.
bool reads_others(const lower::Kernel& k) {
  std::vector<bool> reduced(k.inputs.size());
  bool others = false;
  for (const lower::Pass& p : k.passes) {
    bool again = false;
    for (const lower::Node& n : p.nodes) {
      again |= n.op == lower::Op::Scratch;
      if (n.op != lower::Op::Load || k.inputs[n.imm].per_row) continue;
      if (!p.reductions.empty()) reduced[n.imm] = true;
      again |= reduced[n.imm];
    }
    others |= p.elementwise && p.reductions.empty() && !again;
  }
  return others;
}

// How many elements of a row lie side by side in the first input.
int64_t piece(const Fused& f) {
  const auto first = std::ranges::find_if(f.ins, [](const FusedOperand& o) { return !o.per_row; });
  if (first == f.ins.end()) return 0;
  int64_t elements = 1;
  for (bool more = true; more;) {
    more = false;
    for (int64_t d : f.reduced)
      if (f.shape[size_t(d)] > 1 && first->strides[size_t(d)] == elements) elements *= f.shape[size_t(d)], more = true;
  }
  return elements;
}

// Whether rows in pieces, laid out for the passes that reduce them and written piece by piece, take longer than to go
// over the pieces as they lie.
bool in_long_pieces(const Fused& f, int64_t length) {
  const bool writes = std::ranges::any_of(f.outs, [](const FusedOperand& o) { return !o.per_row; });
  if (!writes || length < kLongRow) return false;
  const int64_t side_by_side = piece(f);
  return side_by_side >= kLongPiece && side_by_side < length;
}

// Whether all that it reduces are bools along memory, counted in int64.
bool counts_truths(const Fused& f, int64_t length) {
  size_t counts = 0;
  for (const lower::Pass& p : f.kernel.passes)
    for (const lower::Reduction& r : p.reductions) {
      const lower::Node& value = p.nodes[size_t(r.value[0])];
      const bool converts = value.op == lower::Op::Convert || value.op == lower::Op::Select;
      if (r.combine != lower::Combine::Add || r.accumulator != DType::I64 || !converts ||
          p.nodes[size_t(value.arg[0])].type != DType::Bool)
        return false;
      ++counts;
    }
  return counts > 0 && length >= kManyTruths && piece(f) == length;
}

Rows choose(Fused& f, int64_t length, int64_t values) {
  int64_t rows = 1;
  for (size_t d = 0; d < f.shape.size(); ++d) rows *= is_reduced(f, d) ? 1 : f.shape[d];
  const int columns = columns_dim(f);
  const bool made = std::ranges::any_of(f.ins, &FusedOperand::made_by);
  f.kernel.across = columns >= 0 || (rows >= kVector && length <= eager::kShortColumn && !made);
  f.kernel.side_by_side = false;
  const int64_t most = made ? eager::kShortAcross : turned_over(f);
  const bool is_short = rows >= kVector && length <= most;
  if (columns >= 0 && (made || !side_by_side(f, size_t(columns)))) return Rows::Across;
  if (in_long_pieces(f, length)) return Rows::Pieces;
  const int64_t run = is_short ? rows_in_step(f, length) : rows;
  if (is_short && run < kManyRows && (run % kVector != 0 || (columns >= 0 && run < rows))) return Rows::Short;
  if (is_short && run < rows && run * length < kFewTogether) return Rows::Short;
  if (columns >= 0) find_broadcasts(f, size_t(columns));
  // Columns go in runs of those that all operands walk in one step; few are worth none.
  const bool few = is_short && (run == rows ? rows * length < eager::kSmall : run * length < eager::kFewElements);
  // Rows along memory that are turned over as they are read; a sum alone folds them without a text.
  const bool turned = columns < 0 && length <= most;
  if (turned && is_short && (only_sums(f) || moves_more(f))) return Rows::Short;
  const bool fits = f.kernel.across && !few && !turned && lower::reduces_columns(f.kernel);
  const int64_t line = fits ? rows_in_step(f, length) : 0;
  const bool lines = fits && columns >= 0 && goes_by_lines(f, line);
  const bool short_line = line < kShortLine || (line % kVector != 0 && line < 2 * kShortLine);
  if (lines && (short_line || shares_halves(f))) return Rows::Across;
  const bool as_rows = lines && line < kLongLine && !lower::takes_trees(f.kernel) &&
                       f.kernel.passes[0].reductions[0].combine <= lower::Combine::Mul;
  if (fits && !as_rows)
    return values <= kFewValues || lower::prints_across(f.kernel, 1, lower::Isa::V4) ? Rows::Fit : Rows::Values;
  f.kernel.across = columns >= 0;
  // Sums of longer ones are faster one by one, as columns.
  const bool wide =
      columns >= 0 && f.shape[size_t(columns)] >= kVector &&
      length <= (!as_rows && (sums(f) || reads_others(f.kernel)) ? eager::kShortAcross : eager::kLongestAcross);
  f.kernel.side_by_side = (is_short || wide) && !made;
  if (f.kernel.side_by_side && lower::computes_across(f.kernel, lower::Isa::V4)) return Rows::Fit;
  f.kernel.side_by_side = false;
  // A sum alone turns such rows to columns, which this kernel does not.
  if (rows >= kVector && length <= eager::kShortColumn && columns < 0 && sums(f)) return Rows::Short;
  if (made && length > eager::kPart) return Rows::Made;
  if (columns >= 0) return Rows::Across;
  if (is_short) return Rows::Short;
  return rows >= kVector && values > kFewValues && length < kWorth * values ? Rows::Values : Rows::Fit;
}

}  // namespace

bool apart(const FusedOperand& a, const FusedOperand& b, const DimVec& shape) {
  if (a.memory.block != b.memory.block || a.memory.dtype != b.memory.dtype || !(a.strides == b.strides)) return false;
  std::vector<size_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (a.strides[d] < 0) return false;
    if (a.strides[d] > 0) dims.push_back(d);
  }
  std::ranges::sort(dims, std::ranges::less(), [&](size_t d) { return a.strides[d]; });
  // Inner dims reach less far than the two lie from each other; a step of any outer one is further than all before it.
  const int64_t distance = std::abs(a.memory.offset - b.memory.offset);
  int64_t reach = 0;
  bool parts = false;
  for (size_t d : dims) {
    const int64_t step = a.strides[d];
    if (!parts && reach < distance && reach + distance < step) parts = true, reach += distance;
    if (parts && step <= reach) return false;
    reach += (shape[d] - 1) * step;
  }
  return parts || reach < distance;
}

const char* reason(Rows rows) {
  return rows == Rows::Short     ? "its rows are short"
         : rows == Rows::Across  ? "its rows lie across memory"
         : rows == Rows::Pieces  ? "its rows lie in long pieces"
         : rows == Rows::Counted ? "its bools are counted as bytes, more at a time than numbers"
         : rows == Rows::Made    ? "what its long rows read would be made in each pass"
                                 : "what it computes of its rows is more than they are";
}

Rows lay_rows(Fused& f, int64_t length, int64_t values, int64_t chain) {
  const Rows chosen = choose(f, length, values);
  const int64_t elements = std::accumulate(f.shape.begin(), f.shape.end(), int64_t{1}, std::multiplies<>());
  if (elements <= 4 * kCached && counts_truths(f, length)) return Rows::Counted;
  if (elements <= kGathered && elements <= kFewRows * length) return Rows::Fit;
  if (chosen != Rows::Fit || (f.kernel.across && lower::reduces_columns(f.kernel))) return chosen;
  if (f.kernel.side_by_side) {
    lower::Kernel cut = f.kernel;
    lower::cut_passes(cut, kMaxScratch);
    if (lower::computes_across(cut, lower::Isa::V4)) f.kernel = std::move(cut);
    return chosen;
  }
  // What a chain waits for, and what is computed behind a row's end, is much of such rows; alone it goes over all of
  // them as one. Not where memory takes longer than both.
  if (length < kSoonOver && length < elements / kVector && elements <= kCached && chain > (length % kVector ? 12 : 32))
    return Rows::Short;
  lower::cut_passes(f.kernel, kMaxScratch);
  return chosen;
}

void find_row_values(Fused& f) {
  const auto isa = lower::Isa(eager::current_isa());
  lower::Kernel& k = f.kernel;
  if (f.elsewhere || !lower::walks_rows(k, isa)) return;
  eager::PointwiseLoop loop(f.shape);
  const auto add = [&](const FusedOperand& o, bool output) {
    DimVec strides = o.strides;
    for (int64_t& s : strides) s *= itemsize(o.memory.dtype);
    loop.add(nullptr, std::move(strides), o.memory.dtype, output);
  };
  for (const FusedOperand& o : f.outs) add(o, true);
  for (const FusedOperand& o : f.ins) {
    if (o.made_by) return;
    add(o, false);
  }
  k.row_values = loop.row_values(lower::together(k, isa));
}

}  // namespace strata::jit
