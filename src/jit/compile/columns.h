// Rows that lie across memory: neighbouring ones lie side by side, and are reduced as columns.
#pragma once
#include "jit/compile/fused.h"

namespace strata::jit {

// Whether a kernel's rows do. Then the inputs that lack the columns' dim or the reduced one are said
// (Operand::broadcast) where the kernel for columns can take them so: where one dim is reduced, and a vector of columns
// is there.
bool lay_columns(Fused& fused);

}  // namespace strata::jit
