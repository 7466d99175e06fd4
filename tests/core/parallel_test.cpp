// core/parallel: the threads of a region.
#include "core/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace strata {
namespace {

// Where a thread may run now, as the process was allowed to.
bool may_run_everywhere(const cpu_set_t& allowed) {
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &allowed);
}

// Runs `regions` regions of two threads and counts those whose threads ended on one core.
int together(int regions) {
  int found = 0;
  for (int k = 0; k < regions; ++k) {
    std::atomic<int> core[2] = {-1, -2};
    parallel_for(0, 2, 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) core[i] = sched_getcpu();
    });
    found += core[0] == core[1];
  }
  return found;
}

void busy(std::chrono::microseconds time) {
  const auto begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begun < time) continue;
}

// Runs a region whose pieces numbered from `slow` on take long, and tells how often each element was gone over.
std::vector<int> times_gone_over(int64_t begin, int64_t end, int64_t grain, int64_t slow) {
  std::vector<std::atomic<int>> times(static_cast<size_t>(end - begin));
  parallel_for(begin, end, grain, [&](int64_t from, int64_t to) {
    EXPECT_TRUE((from - begin) % grain == 0 && ((to - begin) % grain == 0 || to == end));
    for (int64_t i = from; i < to; ++i) {
      ++times[size_t(i - begin)];
      if ((i - begin) % grain == 0 && (i - begin) / grain >= slow) busy(std::chrono::microseconds(30));
    }
  });
  return {times.begin(), times.end()};
}

}  // namespace

TEST(Parallel, EachPieceIsDoneOnceWhoeverDoesIt) {
  const int before = num_threads();
  for (int threads : {1, 2, 3, 8, 11}) {
    set_num_threads(threads);
    for (int64_t n : {1, 2, 3, 17, 64, 1000})
      for (int64_t grain : {1, 2, 7, 100})
        for (int64_t slow : {int64_t(0), n / grain / 2, n}) {
          const std::vector<int> times = times_gone_over(5, 5 + n, grain, slow);
          EXPECT_EQ(std::count(times.begin(), times.end(), 1), n) << threads << " " << n << " " << grain << " " << slow;
        }
  }
  // More pieces than a part has numbers for.
  set_num_threads(2);
  std::atomic<int64_t> all{0};
  parallel_for(0, int64_t(1) << 36, 1, [&](int64_t from, int64_t to) { all += to - from; });
  EXPECT_EQ(all, int64_t(1) << 36);
  set_num_threads(before);
}

TEST(Parallel, AnErrorEndsTheRegionAndTheNextOneIsWhole) {
  const int before = num_threads();
  set_num_threads(4);
  for (int64_t bad : {0, 1, 500, 998, 999}) {
    EXPECT_THROW(parallel_for(0, 1000, 1,
                              [&](int64_t from, int64_t to) {
                                if (from <= bad && bad < to) throw std::runtime_error("bad");
                                busy(std::chrono::microseconds(5));
                              }),
                 std::runtime_error);
    const std::vector<int> times = times_gone_over(0, 1000, 3, 300);
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), 1000);
  }
  set_num_threads(before);
}

TEST(Parallel, WorkersLeaveTheCoreOfWhoBeganAndKeepTheirAffinity) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one core";
  const int before = num_threads();
  set_num_threads(2);
  // Both threads are brought to one core, as a scheduler may.
  const int core = sched_getcpu();
  std::atomic<bool> kept{true};
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    sched_setaffinity(0, sizeof allowed, &allowed);
  });
  // A worker moves once in a millisecond, and may have done so already.
  const auto begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(2)) continue;
  EXPECT_LT(together(20), 20);
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    if (!may_run_everywhere(allowed)) kept = false;
  });
  EXPECT_TRUE(kept);
  set_num_threads(before);
}

}  // namespace strata
