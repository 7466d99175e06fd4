// What a first run would wait for, done on a thread of its own while a capture goes on.
#pragma once
#include "ir/graph.h"

namespace strata::jit {

// Told of a node that is recorded over shapes. The first one that the library of products will compute opens that: it
// takes some twenty milliseconds to be loaded and to write its first code. A fork waits for the end of it.
void note_ahead(const ir::Graph& graph, const ir::Node& node);
// To be called before the process ends: nothing may be opened while it does.
void finish_ahead();

}  // namespace strata::jit
