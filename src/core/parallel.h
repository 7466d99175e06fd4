// The one parallel_for: LLVM's libomp below it. Ranges are cut at multiples of `grain`, so what a range computes never
// depends on the number of threads.
#pragma once
#include <cstdint>
#include <type_traits>

namespace strata {

int num_threads();
void set_num_threads(int n);
bool in_parallel_region();

using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
// Errors thrown by a range are rethrown on the calling thread once all ranges have ended.
void parallel_for_raw(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context);

template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (end <= begin) return;
  if (end - begin <= grain || num_threads() == 1 || in_parallel_region()) {
    f(begin, end);
    return;
  }
  parallel_for_raw(
      begin, end, grain,
      [](void* context, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<F>*>(context))(b, e); }, &f);
}

}  // namespace strata
