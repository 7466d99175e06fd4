// The one parallel_for: LLVM's libomp below it. Ranges are cut at multiples of `grain`, so what a range computes never
// depends on the number of threads. Each thread walks its part in blocks, then parts of what others have left, and
// looks up between blocks, so that a signal ends a long operator.
#pragma once
#include <cstdint>
#include <type_traits>

namespace strata {

int num_threads();
void set_num_threads(int n);
bool in_parallel_region();
// Whether threads beside the first one have been started, which takes two milliseconds: work that takes less and can do
// without them asks.
bool threads_started();

// Asks, a few times a second at most, whether the calling thread's work is to end, and throws then. For loops that run
// long inside of one range; parallel_for asks between its blocks. An operator that was stopped leaves what it was
// writing half written.
void check_interrupt();
// What it asks: throws to stop the operator at work. Called on the thread that called the operator, never on a worker.
void set_interrupt_hook(void (*hook)());

using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
// The first error thrown by a range is rethrown on the calling thread once all threads have ended; it stops the others
// at their next block.
void parallel_for_raw(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context);
// The same on the calling thread alone.
void run_in_blocks(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context);

template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (end <= begin) return;
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  const bool alone = num_threads() == 1 || in_parallel_region();
  (alone ? run_in_blocks : parallel_for_raw)(
      begin, end, grain,
      [](void* context, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<F>*>(context))(b, e); }, &f);
}

// f(begin, end) over [0, n) in steps on the calling thread, which looks up between them.
template <class F>
void in_steps(int64_t n, F&& f) {
  constexpr int64_t kStep = 1 << 18;
  for (int64_t at = 0; at < n; at += kStep) {
    if (at) check_interrupt();
    f(at, n - at < kStep ? n : at + kStep);
  }
}

}  // namespace strata
