// Rows that a group of items can share.
#pragma once
#include "lower/ir/nest.h"

namespace strata::lower {

// The ranges over a row's elements: one set of ranges that all reductions run over, in the tree's order or in any. 0
// where the kernel is not like that.
uint64_t grouped_ranges(const Nest& nest);

}  // namespace strata::lower
