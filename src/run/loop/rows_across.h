// Row kernels over short rows, or rows that lie across memory: several rows side by side, as columns, through all
// passes. What a pass reduces it writes, and the runs of a tile are folded by tree T. Operands that do not lie so are
// brought into that form, a tile at a time.
#pragma once
#include <algorithm>

#include "run/loop/rows_loop.h"

namespace strata::eager {

constexpr int64_t kLongestAcross = 1024;  // elements of a row: as many as tree T has positions
constexpr int64_t kShortAcross = 40;      // more are faster along the row, if they have to be moved,
constexpr int64_t kSharedAcross = 48;     // as many beside what all rows read, element by element,
constexpr int64_t kSumAcross = 56;        // as many of a sum alone, whose elements are not moved back,
constexpr int64_t kMuchAcross = 112;      // and as many beside much that rows one by one would wait for

// What a kernel does with rows that lie along memory.
struct RowWork {
  size_t reductions;
  bool extremum;  // the first of them (softmax, logsumexp)
  int moved;      // operands of elements, results too, that would be turned over
  bool shared;    // whether there is one whose elements are the same for all rows, but not for all elements

  template <class Kept, class Reduced>
  void add(const Kept& kept_steps, const Reduced& reduced_steps) {
    const auto zero = [](int64_t step) { return step == 0; };
    if (!std::ranges::all_of(kept_steps, zero))
      ++moved;
    else
      shared |= !std::ranges::all_of(reduced_steps, zero);
  }
};
constexpr int64_t short_across(const RowWork& w) {
  if (w.moved > 2 || (w.reductions == 1 && w.extremum)) return kShortAcross;
  if (w.shared) return kSharedAcross;
  return w.reductions == 1 && w.moved == 1 ? kSumAcross : kMuchAcross;
}

// Operands, and what a kernel's passes have besides: its first element of the first column, and bytes between elements.
struct AcrossPlaces {
  static constexpr int kMost = kMaxRowOperands + 32;
  char* ptr[kMost];
  int64_t step[kMost];
};

bool has_across(const StrataKernelEntry& e);
// All passes over `columns` (a multiple of 16) rows of n elements, at most kLongestAcross, that lie as the kernel takes
// them: the operands' places are given, `room` has across_room() bytes. An output may be an input with the same places.
void pass_across(const StrataKernelEntry& e, const void* params, AcrossPlaces& at_hand, int64_t columns, int64_t n,
                 char* room);
int64_t across_room(const StrataKernelEntry& e, int64_t columns, int64_t n);

// False, with nothing done, where that does not fit; the same bits otherwise.
bool run_across(RowsLoop& loop);

}  // namespace strata::eager
