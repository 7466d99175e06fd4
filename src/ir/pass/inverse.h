// Views put back: the call that makes a value of a view's base from a value of the view, by the table's `inverse`.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

// A call of the overload of `name` that takes most of the view's own arguments: the value in the place of `src`, with
// None for the base, which the caller fills in; or where there is no `src`, the value itself, with the base's size or
// dtype. Without an operator where there is none.
Node inverse_call(std::string_view name, const Node& view, const Type& base, Id value);

}  // namespace strata::ir
