#include "core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "base/error.h"

namespace strata {

namespace {
std::atomic<int> threads_{0};
}

int num_threads() {
  int n = threads_.load(std::memory_order_relaxed);
  if (STRATA_UNLIKELY(n == 0)) {
    n = omp_get_max_threads();
    threads_.store(n, std::memory_order_relaxed);
  }
  return n;
}

void set_num_threads(int n) {
  STRATA_CHECK(n > 0, "set_num_threads: expected a positive integer, got ", n);
  threads_.store(n, std::memory_order_relaxed);
}

bool in_parallel_region() { return omp_in_parallel(); }

void parallel_for_raw(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context) {
  grain = std::max<int64_t>(grain, 1);
  int64_t pieces = (end - begin + grain - 1) / grain;
  int threads = static_cast<int>(std::min<int64_t>(num_threads(), pieces));
  std::exception_ptr error;
  std::mutex lock;
#pragma omp parallel num_threads(threads)
  {
    int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t first = pieces * me / team, last = pieces * (me + 1) / team;
    if (first < last) {
      try {
        fn(context, begin + first * grain, std::min(begin + last * grain, end));
      } catch (...) {
        std::lock_guard<std::mutex> hold(lock);
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace strata
