// Functionalisation: operators that write become those that compute the same (functional_twin), and the value that they
// make is written back through the views that lead to it by the views' `inverse` of the table; later readers see the
// new value, views of it made anew. What an input or a captured tensor became is written into it at the end, one
// aten::copy_ each; results that share memory with them, or with each other, still do. The graph is then Functional
// (ir/verify.h).
//
// An operator that writes and has no such form, one that changes a header, one that writes several tensors of which one
// is a view, is written twice or is read beside, and one that may share memory in ways that the table does not say,
// stops the pass: what was written is put back where it belongs, the rest of the graph stays as it was, and the pass
// says which operator stopped it.
//
// Inputs are taken to lie in memory of their own; who runs the graph on others must not use this pass. Captured tensors
// that share memory stop it where one is written. An error of a run that eager would raise between two writes leaves
// inputs unwritten.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

std::string make_functional(Graph& graph);

}  // namespace strata::ir
