// Which versions the innermost loop of a printed nest has: Note [Innermost loop].
#include <algorithm>
#include <bit>

#include "lower/print/nest_printer.h"

namespace strata::lower {

// The innermost loop has versions where all that is reduced inside of it goes element after element: then a strip of
// the loop is reduced at a time.
void NestPrinter::plan_innermost() {
  const uint64_t loops = nest_.loops();
  int range = -1;
  for (size_t r = 0; r < nest_.ranges.size(); ++r)
    if (loops >> r & 1) range = int(r);
  if (range < 0) return;
  for (const NestStore& s : nest_.stores)
    if (nest_.runs_over(s) != loops) return;
  // A range that is reduced, too, can't be cut for the loop alone; a reduction inside of another one goes with it.
  uint64_t bound = 0;
  for (const Reduction& r : nest_.reductions) bound |= r.over;
  if (bound >> range & 1) return;
  std::vector<int> reductions;
  uint64_t around = 0;  // ranges that reductions hang on
  for (size_t v = 0; v < nest_.nodes.size(); ++v) {
    if (nest_.nodes[v].op != Op::Reduced) continue;
    around |= nest_.depends[v];
    if (!(nest_.depends[v] >> range & 1)) continue;
    if (nest_.depends[v] & bound) return;
    const int k = int(nest_.nodes[v].imm);
    if (!nest_.reductions[size_t(k)].sequence || is_complex(nest_.reductions[size_t(k)].accumulator)) return;
    if (std::find(reductions.begin(), reductions.end(), k) == reductions.end()) reductions.push_back(k);
  }
  inner_range_ = range;
  for (int k : reductions) {
    const Reduction r = nest_.reductions[size_t(k)];
    std::vector<int> roots;
    for (int v : r.reads())
      if (v >= 0) roots.push_back(v);
    strips_.emplace(std::piecewise_construct, std::forward_as_tuple(k), std::forward_as_tuple(nest_, range, roots));
    // What is checked outside of the reduction's loops would not be where these have no turns.
    for (int v : strips_.at(k).status())
      if (!(nest_.depends[size_t(v)] & r.over)) {
        strips_.clear();
        inner_range_ = -1;
        return;
      }
    // In order, so that one piece at most may have elements.
    const int last = 63 - std::countl_zero(r.over);
    if (around >> last & 1) continue;
    const InnerLoop row(nest_, last, roots);
    if (std::ranges::count_if(row.pieces(), [&](const InnerPiece& p) { return !row.never(p, r.guard); }) == 1)
      rows_.emplace(k, row);
  }
  last_.emplace(nest_, range);
  // Turns that may meet in one element stay in order.
  for (size_t k = 0; k < nest_.stores.size(); ++k) {
    if (nest_.stores[k].into == NestStore::None) continue;
    for (const InnerPiece& piece : last_->pieces())
      if (!piece.writes.count(int(k)) && !last_->never(piece, nest_.stores[k].guard)) {
        last_.reset();
        inner_range_ = -1;
        return;
      }
  }
}

}  // namespace strata::lower
