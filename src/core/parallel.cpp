#include "core/parallel.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>

#include "base/error.h"

namespace strata {

namespace {
using Clock = std::chrono::steady_clock;

std::atomic<int> threads_{0};
std::atomic<bool> started_{false};
std::atomic<void (*)()> interrupt_hook{nullptr};

// A block is to take some milliseconds: short enough for a signal, long enough that nothing is lost by the cut.
constexpr auto kBlockTime = std::chrono::milliseconds(4);
constexpr int64_t kBlockGrowth = 8;
// Asking takes the interpreter's lock, for which a thread may have to wait.
constexpr auto kAskEvery = std::chrono::milliseconds(100);

struct Thread {
  const std::atomic<bool>* stopped = nullptr;  // of the innermost parallel region
  bool worker = false;                         // of a region that another thread began
  Clock::time_point asked{};
};
thread_local Thread this_thread;

// Threads of one region on one core give way to each other, which takes a region of 7 us 45 or, where they don't yield,
// a slice of the scheduler; and it may leave them there. So a worker that finds itself on the core of the thread that
// began the region leaves it. Where there is no other core, or others are no better, it asks again after a while.
void leave_core(int core) {
  constexpr auto kAgain = std::chrono::milliseconds(1);
  thread_local Clock::time_point left{};
  const Clock::time_point now = Clock::now();
  if (now - left < kAgain) return;
  left = now;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  cpu_set_t others = allowed;
  CPU_CLR(core, &others);
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

// Thrown on a thread whose region has an error already; never seen outside of it.
struct Stopped {};

void check_interrupt_at(Clock::time_point now) {
  Thread& t = this_thread;
  if (t.stopped && t.stopped->load(std::memory_order_relaxed)) throw Stopped();
  if (t.worker || now - t.asked < kAskEvery) return;
  t.asked = now;
  if (auto hook = interrupt_hook.load(std::memory_order_relaxed)) hook();
}
}  // namespace

void set_interrupt_hook(void (*hook)()) { interrupt_hook.store(hook); }
void check_interrupt() { check_interrupt_at(Clock::now()); }

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
bool threads_started() { return started_.load(std::memory_order_relaxed); }

void run_in_blocks(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context) {
  int64_t block = std::max<int64_t>(grain, 1);
  Clock::time_point before = Clock::now();
  while (end - begin > block) {
    fn(context, begin, begin + block);
    begin += block;
    Clock::time_point now = Clock::now();
    check_interrupt_at(now);
    if (now - before < kBlockTime && block < end / kBlockGrowth) block *= kBlockGrowth;
    before = now;
  }
  fn(context, begin, end);
}

void parallel_for_raw(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* context) {
  grain = std::max<int64_t>(grain, 1);
  int64_t pieces = (end - begin) / grain + ((end - begin) % grain != 0);
  int threads = static_cast<int>(std::min<int64_t>(num_threads(), pieces));
  std::exception_ptr error;
  std::mutex lock;
  std::atomic<bool> stopped{false};
  if (threads > 1 && !threads_started()) started_.store(true, std::memory_order_relaxed);
  const int core = sched_getcpu();
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() != 0 && sched_getcpu() == core) leave_core(core);
    int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t first = pieces * me / team, last = pieces * (me + 1) / team;
    if (first < last) {
      const Thread outer = this_thread;
      this_thread.stopped = &stopped;
      this_thread.worker |= me != 0;
      try {
        run_in_blocks(begin + first * grain, std::min(begin + last * grain, end), grain, fn, context);
      } catch (...) {
        // Stopped comes from this region only after its error, or from an outer one.
        std::lock_guard<std::mutex> hold(lock);
        if (!error) error = std::current_exception();
        stopped.store(true, std::memory_order_relaxed);
      }
      this_thread.stopped = outer.stopped;
      this_thread.worker = outer.worker;
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace strata
