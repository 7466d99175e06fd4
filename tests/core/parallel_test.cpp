// core/parallel: the threads of a region.
#include "core/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>

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

}  // namespace

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
