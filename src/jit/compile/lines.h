// Where kernels come from in the user's program, for lower's Kernel::lines.
#pragma once
#include "jit/compile/group.h"

namespace strata::jit {

// By number of a launch, for those of the group: `12 "model.py"`, the innermost line of its node's span.
std::vector<std::string> source_lines(const LaunchList& list, const Group& group);

}  // namespace strata::jit
