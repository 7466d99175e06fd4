// The backward where some results of the forward got no gradient.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace strata::jit {

// `backward` without what hangs on absent tangents alone, as eager's engine never computes it: a sum with such an
// operand is the other one, a result that hangs on no tangent that is `given` is None, and zeros stand only where
// something that is computed reads a gradient that is not (a part of what stack or cat join; autograd.Function), since
// a zero times an infinity is a NaN. The tangents are the parameters after `saved` others; the graph that comes back
// has the given ones, and of the others those that it `reads`: eager unpacks no more.
//
// None where the backward writes its parameters or what is given over what is absent, or an operator refuses the
// strides that a gradient has then. Raises NotImplementedError where `own` (an autograd.Function or a hook took part)
// and a gradient hangs on no tangent at all: whether eager would compute it cannot be told.
struct WithoutAbsent {
  ir::Graph graph;
  std::vector<char> reads;  // by saved value
};
std::optional<WithoutAbsent> without_absent(const ir::Graph& backward, size_t saved, const std::vector<char>& given,
                                            bool own);

}  // namespace strata::jit
