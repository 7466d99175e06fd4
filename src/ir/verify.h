// What a graph must be (the spec of ir/graph.h), and what its nodes may do at a stage:
//   Captured: operators may write their operands, and results may share memory with them.
//   Functional: no operator writes, but for the last nodes of the body: one aten::copy_ at most into each parameter,
//     whose results nobody reads. Views are allowed: nothing tells them from copies, but for an output that is one.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

enum class Stage : uint8_t { Captured, Functional };

// Raises Value, naming the node and what it breaks.
void verify(const Graph& graph, Stage stage = Stage::Captured);

// Whether calls give what the types of their results say, by running kernels, views and the like over shapes; raises as
// verify() does. What writes headers or draws, what C++ alone says, and lists are taken at their word.
void verify_types(const Graph& graph);

// Whether a value of the one type may stand where one of the other is expected.
bool same(const Type& a, const Type& b);

}  // namespace strata::ir
