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

// When the version for elements side by side is taken.
std::string NestPrinter::side_by_side() const {
  std::vector<std::string> terms;
  const auto also = [&](const std::string& term) {
    if (std::ranges::find(terms, term) == terms.end()) terms.push_back(term);
  };
  for (int s : last_->strides()) also(ref(s) + " == 1");
  for (const auto& [k, loop] : strips_)
    for (int s : loop.strides()) also(ref(s) + " == 1");
  // Short loops: one turn after the other, or the loops of the reduction would run for a few elements each.
  if (!strips_.empty()) also(end_of(inner_range_) + " - " + begin_of(inner_range_) + " >= " + std::to_string(kShort));
  // Places are as wide as an element where they can be: a choice between wider ones takes twice the vectors.
  for (const auto& [k, loop] : strips_) {
    std::string places;
    for (size_t d = 0; d < nest_.ranges.size(); ++d)
      if (nest_.reductions[size_t(k)].below >> d & 1)
        places += (places.empty() ? "(u64)" : " * (u64)") + parameter(NestParameter::Extent, int(d), 0);
    if (!places.empty()) also(places + " < (u64)1 << 31");
  }
  std::string condition;
  for (const std::string& term : terms) condition += (condition.empty() ? "" : " && ") + term;
  return condition;
}

}  // namespace strata::lower
