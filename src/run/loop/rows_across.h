// Row kernels over short rows, or rows that lie across memory: several rows side by side, as columns, through all
// passes. What a pass reduces it writes, and the runs of a tile are folded by tree T. Operands that do not lie so are
// brought into that form, a tile at a time.
#pragma once
#include "run/loop/rows_loop.h"

namespace strata::eager {

constexpr int64_t kLongestAcross = 1024;  // elements of a row: as many as tree T has positions
constexpr int64_t kShortAcross = 40;      // more are faster along the row, if they have to be moved,
constexpr int64_t kSumAcross = 56;        // as many of a sum alone, whose elements are not moved back,
constexpr int64_t kMuchAcross = 96;       // and as many beside much that rows one by one would wait for

// By a kernel's reductions, whether the first is an extremum (softmax, logsumexp), and whether it writes elements.
constexpr int64_t short_across(size_t reductions, bool extremum, bool elements) {
  if (reductions > 1 && (extremum || !elements)) return kMuchAcross;
  return extremum || elements ? kShortAcross : kSumAcross;
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
