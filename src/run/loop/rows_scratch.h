// Where a row's temporaries lie. Those that last are as long as the row; local ones have room for one part of it.
#pragma once
#include <algorithm>
#include <bit>

#include "run/loop/rows_loop.h"

namespace strata::eager {

class RowScratch {
 public:
  RowScratch(const StrataKernelEntry& e, int64_t elements, int64_t width)
      : all_(e.scratch_rows), lasting_(e.scratch_rows - e.local_rows), elements_(elements), width_(width) {}
  int all() const { return all_; }
  int lasting() const { return lasting_; }

  // Room for rows [from, to).
  int64_t bytes(int from, int to) const {
    int64_t sum = kPage;
    for (int i = from; i < to; ++i) sum += bytes_of(i);
    return sum;
  }
  // They lie on their pages as `like` does on its own: a load whose address has the last 12 bits of a store just before
  // it waits for that, and here none has.
  void place(char* room, const char* like, int from, int to, char** rows) const {
    room += (std::bit_cast<uintptr_t>(like) - std::bit_cast<uintptr_t>(room)) % kPage / 64 * 64;
    for (int i = from; i < to; room += bytes_of(i++)) rows[i] = room;
  }
  void advance(char* const* rows, int64_t elements, char** at) const {
    for (int i = 0; i < all_; ++i) at[i] = rows[i] + (i < lasting_ ? elements * width_ : 0);
  }

 private:
  static constexpr int64_t kPage = 4096;  // bytes
  int64_t bytes_of(int row) const {
    const int64_t n = row < lasting_ ? elements_ : std::min(elements_, kPart);
    return ((n + 15) / 16 * 16 * width_ + kPage - 1) / kPage * kPage;
  }

  int all_, lasting_;
  int64_t elements_, width_;
};

}  // namespace strata::eager
