// Runs of accumulators that become one, element by element, as a reduction joins two values.
#pragma once
#include <cstdint>

#include "lower/kernel_abi.h"

namespace strata::eager {

struct Joiner {
  void (*join)(char* to, const char* earlier, const char* later, int64_t n);
  void (*lanes)(char* all,
                int64_t n);           // 16 runs of n, which follow each other, by tree T's bits 3 to 0; into the first
  void (*fill)(char* to, int64_t n);  // with what changes nothing that it joins
  void (*blocks)(char* all, int64_t n);  // n runs of 16, which follow each other, pairwise in order; into the first
  bool wide = false;                     // join() has longer registers than the printed kernel
};

// Of sums, products, extrema and truths of real numbers.
Joiner joiner_of(const StrataReduction& how);

// Runs of `n` accumulators, `step` bytes from each other, into the first, pairwise in order: an odd last one goes up as
// it is.
void join_pairs(const Joiner& joiner, char* all, int64_t runs, int64_t step, int64_t n);

}  // namespace strata::eager
