// Fused nests that something is missing from, which a comparison of bits must notice.
#pragma once
#include "lower/fuzz/run.h"

namespace strata::lower::fuzz {

struct Mutation {
  const char* name;
  // Changes a nest at a random place that has what the mutation takes away; false where there is none.
  bool (*change)(Random& rng, Nest& nest);
  Change text = {};  // and the printed file
};
const std::vector<Mutation>& mutations();

}  // namespace strata::lower::fuzz
