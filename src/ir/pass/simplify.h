// Simplification that keeps bits. A value that another one equals bit for bit, with the same type, stands for it:
//   x * 1 and x / 1 of real x        a product with 1 is exact, -0.0 and infinities too (a complex one is not: inf * 0)
//   x - 0 and x + -0.0 of real x     both give x for every x; x + 0.0 does not: -0.0 + 0.0 is 0.0
//   integers x + 0, x - 0            exact
//   -(-x)                            signs flip; integers wrap
//   f(f(x)) as f(x)                  abs, floor, ceil, trunc, sgn-free: their results are theirs
//   ~~x, and not not x of bools      bits flip
//   a cast back of a cast that widens    every value of the narrow dtype is one of the wide one
//   a copy of x                      clone, _to_copy of the same type
//   views whose sizes and strides are x's    a view has only elements of its operand (as_strided aside), so it is all
//   of it view of a view of a contiguous x     is the view of x: both count elements in row-major order
// What was a tensor of its own must not be told from x: no writes of either's memory in between, and not both returned.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

std::string simplify(Graph& graph);

}  // namespace strata::ir
