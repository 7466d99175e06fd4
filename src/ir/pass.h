// Passes: named changes of a graph, each in a file of its own under pass/. A pass keeps what a run gives: the bits of
// results and of written inputs, which of them share memory, errors, the generator's state; and the nodes' spans.
#pragma once
#include "base/array_ref.h"
#include "ir/graph.h"

namespace strata::ir {

struct Pass {
  const char* name;
  // Says in words what kept it from more, or nothing.
  std::string (*run)(Graph& graph);
};
ArrayRef<Pass> all_passes();
const Pass& pass_named(std::string_view name);  // or a Value error with the names

struct PassLog {
  struct Line {
    std::string pass;
    size_t before = 0, after = 0;  // nodes
    double microseconds = 0;
    std::string note;
  };
  std::vector<Line> lines;
  std::string text() const;  // "dead: 12 -> 10 nodes, 3 us", a line each
};

// Runs passes in turn; values are numbered anew after each. Debug builds verify between them.
void run_passes(Graph& graph, ArrayRef<Pass> passes, PassLog& log);

// Drops values that nothing defines and numbers the others in the order of their definitions.
void renumber(Graph& graph);

}  // namespace strata::ir
