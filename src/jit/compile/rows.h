// In which forms a fused kernel has its rows: one after the other along memory, side by side, or as columns.
#pragma once
#include "jit/compile/fused.h"

namespace strata::jit {

constexpr size_t kMaxScratch = 12;  // rows of temporaries that a kernel may have

// Fit: there is a form that is as fast as the launches one by one. Short, Across, Pieces, Made: there is none for rows
// that are short, lie across memory, lie in long pieces, or are few and long and read what is made anew in each pass.
// Values: none for what is computed of a value of each row. Counted: bools, which are counted as bytes by themselves.
enum class Rows { Fit, Short, Across, Pieces, Counted, Made, Values };
const char* reason(Rows rows);  // of the others, why not

// Chooses, and says so in the kernel. `length`: elements of a row; `values` and `chain`: nodes of one value a row, and
// of one an element, that the launches over rows have not themselves.
Rows lay_rows(Fused& fused, int64_t length, int64_t values, int64_t chain);

// Of elements: says in the kernel which inputs are one value in every row (row_values), where it has a form for that.
void find_row_values(Fused& fused);

}  // namespace strata::jit
