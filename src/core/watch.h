// A hook on the shortest way to a kernel, where memory for its result is taken (make_tensor_like): it costs nothing
// while no thread sets it, since it shares a branch with shape-only execution.
#pragma once

namespace strata {

// What is called on threads that watch; it may throw.
void set_result_hook(void (*hook)());
void watch_results(bool on);  // on this thread

}  // namespace strata
