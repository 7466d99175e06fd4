// Gradients term by term. Eager's engine adds the gradients of a value one after the other as they come; where
// something outside of a graph has sent one before, all that comes from inside is added to that, not to each other
// first.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace strata::jit {

struct Terms {
  ir::Graph graph;            // the backward with its results' terms in their places
  std::vector<size_t> count;  // how many each result has: 0 where there is none
};

// `backward` with the results for which `apart` is set as their terms, in the order in which they are added. None where
// each of these has one.
std::optional<Terms> term_by_term(const ir::Graph& backward, const std::vector<char>& apart);

}  // namespace strata::jit
