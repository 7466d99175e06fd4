// Faults on demand. Tests call the plugin's second symbol:
//   int32_t strata_null_control(const char* what, const char* value)
//   "fail_allocation", "N": the N-th allocation from now on fails; "fail_kernel", "N": the N-th kernel; "0": none
//   "flip_bit", "N": the lowest bit of the first byte that the N-th kernel writes (of its first memory) is wrong
//   afterwards "delay_us", "T": each piece of work takes so much longer "skip_barrier", "N": no item waits at the N-th
//   barrier of its group "hide", "aten::neg aten::exp": operators that the device does not offer
// It gives 0, or -1 for what it does not know.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>

#include "null.h"

namespace null {

namespace {
std::atomic<int64_t> countdown[3];
std::atomic<int64_t> delay{0}, skipped{0};
std::mutex lock;
std::set<std::string> hidden;
}  // namespace

bool fails(Fault fault) {
  std::atomic<int64_t>& n = countdown[int(fault)];
  int64_t left = n;
  while (left > 0)
    if (n.compare_exchange_weak(left, left - 1)) return left == 1;
  return false;
}

int64_t delay_us() { return delay; }
int64_t skipped_barrier() { return skipped; }

int32_t offers(int32_t, const char* op) {
  std::lock_guard<std::mutex> hold(lock);
  return !hidden.count(op);
}

}  // namespace null

extern "C" __attribute__((visibility("default"))) int32_t strata_null_control(const char* what, const char* value) {
  const int64_t number = std::strtoll(value, nullptr, 10);
  if (std::strcmp(what, "fail_allocation") == 0)
    null::countdown[int(null::Fault::Allocation)] = number;
  else if (std::strcmp(what, "fail_kernel") == 0)
    null::countdown[int(null::Fault::Kernel)] = number;
  else if (std::strcmp(what, "flip_bit") == 0)
    null::countdown[int(null::Fault::Bit)] = number;
  else if (std::strcmp(what, "delay_us") == 0)
    null::delay = number;
  else if (std::strcmp(what, "skip_barrier") == 0)
    null::skipped = number;
  else if (std::strcmp(what, "hide") == 0) {
    std::lock_guard<std::mutex> hold(null::lock);
    null::hidden.clear();
    std::stringstream names(value);
    for (std::string name; names >> name;) null::hidden.insert(name);
  } else {
    return -1;
  }
  return 0;
}
