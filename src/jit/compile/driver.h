// The end of what source() shows: functions that run a plan's kernels over whole tensors, so that the text does its
// work without Strata, compiled by hand. Plans run by the loops of run/, not by these.
#pragma once
#include "jit/compile/fused.h"

namespace strata::jit {

// C text for after print_file(): `run_0(memory)` and so on, for uses of the kernels: the use's kernel and its number
// among the file's entries.
std::string print_driver(const std::vector<std::pair<const Fused*, int>>& uses);

}  // namespace strata::jit
