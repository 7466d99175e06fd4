// Signs that nobody reads. x * x, |x| and what is shifted out need the other bits of x alone, and so does whatever
// hands them such a value on: sin(x)^2 needs no sign of sin(x), which is found from the quadrant.
//
// Before: outputs name nodes of `graph`. After: the arguments of its nodes pass over negations, absolute values, copied
// and flipped signs whose result is read so. Every output has its bits, NaN aside (any NaN is any NaN); no node is
// added or removed.
#pragma once
#include <array>
#include <vector>

#include "lower/ir/ir.h"

namespace strata::lower {

void ignore_signs(Graph& graph, const std::vector<std::array<int, 2>>& outputs);

}  // namespace strata::lower
