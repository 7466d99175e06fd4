// A reduction of several columns side by side, element by element of a column.
#pragma once
#include <cstdint>

#include "lower/kernel_abi.h"

namespace strata::eager {

// What `n` runs of `wide` accumulators, `step` bytes from each other, become by tree T (n: at most its 1,024
// positions), at `to`; of argmax and argmin the values there and int64 places at `places`. `room` has space for all
// runs side by side, and may be where they are.
void fold_columns(const StrataReduction& how, const char* runs, int64_t step, int64_t n, int64_t wide, char* room,
                  char* to, char* places);

}  // namespace strata::eager
