#include "core/parallel.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

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
// What is cut or taken from another thread is to take so long.
constexpr Clock::duration kWorth = std::chrono::microseconds(20);
constexpr int64_t kPartBlocks = 16;  // at least so many of a part can be taken by other threads
constexpr int64_t kMostPieces = 0xffffffff;
constexpr int kFewThreads = 8;
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

// The pieces [next, end) of one thread's part that nobody has begun: both numbers in one word. Its own thread takes
// them from the front; one that is through with its own takes half of them from the back, so that a core that is
// slower, or that somebody else uses, holds nobody up.
class alignas(64) Part {
 public:
  void set(uint64_t next, uint64_t end) { left_.store(next << 32 | end, std::memory_order_relaxed); }
  // At most half of what is left, so that the rest can be taken, but `least`.
  bool take(int64_t block, int64_t least, int64_t* first, int64_t* last) {
    return claim(1, [&](int64_t next, int64_t end) {
      *first = next;
      *last = std::min(end, next + std::clamp(block, int64_t{1}, std::max(least, (end - next) / 2)));
      return std::pair(*last, end);
    });
  }
  // Of fewer than `least` nothing: they lie in the other core's cache.
  bool steal(int64_t least, int64_t* first, int64_t* last) {
    return claim(least, [&](int64_t next, int64_t end) {
      *first = next + (end - next) / 2;
      *last = end;
      return std::pair(next, *first);
    });
  }

 private:
  template <class F>
  bool claim(int64_t least, F&& rest_of) {
    uint64_t now = left_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t next = int64_t(now >> 32), end = int64_t(now & kMostPieces);
      if (end - next < least) return false;
      const auto [a, b] = rest_of(next, end);
      if (left_.compare_exchange_weak(now, uint64_t(a) << 32 | uint64_t(b), std::memory_order_relaxed)) return true;
    }
  }
  std::atomic<uint64_t> left_{0};
};

// What the thread `me` does next, of its own part or else of another's. What another thread has stolen and not stored
// yet that thread does.
bool next_pieces(Part* parts, int threads, int me, int64_t block, int64_t least, int64_t* first, int64_t* last) {
  while (!parts[me].take(block, least, first, last)) {
    int away = 1;
    while (away < threads && !parts[(me + away) % threads].steal(least, first, last)) ++away;
    if (away == threads) return false;
    parts[me].set(uint64_t(*first), uint64_t(*last));
  }
  return true;
}

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
  const auto in_pieces = [&] { return (end - begin) / grain + ((end - begin) % grain != 0); };
  grain = std::max<int64_t>(grain, 1);
  while (in_pieces() > kMostPieces) grain *= 2;
  const int64_t pieces = in_pieces();
  const int threads = static_cast<int>(std::min<int64_t>(num_threads(), pieces));
  const int64_t each = std::max<int64_t>(1, pieces / threads / kPartBlocks);
  Part few[kFewThreads];
  const std::unique_ptr<Part[]> many(threads > kFewThreads ? new Part[size_t(threads)] : nullptr);
  Part* parts = many ? many.get() : few;
  for (int64_t t = 0; t < threads; ++t) parts[t].set(pieces * t / threads, pieces * (t + 1) / threads);
  std::exception_ptr error;
  std::mutex lock;
  std::atomic<bool> stopped{false};
  if (threads > 1 && !threads_started()) started_.store(true, std::memory_order_relaxed);
  const int core = sched_getcpu();
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    if (me != 0 && sched_getcpu() == core) leave_core(core);
    const Thread outer = this_thread;
    this_thread.stopped = &stopped;
    this_thread.worker |= me != 0;
    try {
      int64_t block = 1, least = each, first, last;
      Clock::time_point before = Clock::now();
      for (bool more = next_pieces(parts, threads, me, block, least, &first, &last); more;) {
        fn(context, begin + first * grain, std::min(begin + last * grain, end));
        const Clock::time_point now = Clock::now();
        if (now - before < kBlockTime && block < pieces) block *= kBlockGrowth;
        least = std::max(each, int64_t((last - first) * kWorth / std::max(now - before, Clock::duration(1))));
        before = now;
        more = next_pieces(parts, threads, me, block, least, &first, &last);
        if (more) check_interrupt_at(now);
      }
    } catch (...) {
      // Stopped comes from this region only after its error, or from an outer one.
      std::lock_guard<std::mutex> hold(lock);
      if (!error) error = std::current_exception();
      stopped.store(true, std::memory_order_relaxed);
    }
    this_thread.stopped = outer.stopped;
    this_thread.worker = outer.worker;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace strata
