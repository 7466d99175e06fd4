// Faults on demand. Tests call the plugin's second symbol:
//   int32_t strata_null_control(const char* what, const char* value)
//   "fail_allocation", "N M": the N-th allocation from now on fails, and the M behind it; "fail_kernel", "N": the N-th
//   kernel; "0": none
//
//   "flip_bit", "N": the lowest bit of the first byte that the N-th kernel writes (of its first memory) is wrong
//
//   "delay_us", "T": each piece of work takes so much longer; "delay_copy_us", "T": each copy does
//
//   "skip_barrier", "N": no item waits at the N-th barrier of its group
//
//   "hide", "aten::neg aten::exp": operators that the device does not offer
//
//   "library", "aten::mm": operators of the library that decline no case that they know; at first all decline.
//   "fail_library", "N": the N-th run of one
//
//   "fail_graph", "N": the N-th making or launching of a graph
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
std::atomic<int64_t> countdown[5];
std::atomic<int64_t> more{0}, failing{0};  // allocations behind the N-th
std::atomic<int64_t> delay{0}, delay_copy{0}, skipped{0};
std::mutex lock;
std::set<std::string> hidden, libraries;

void take_names(std::set<std::string>& to, const char* value) {
  std::lock_guard<std::mutex> hold(lock);
  to.clear();
  std::stringstream names(value);
  for (std::string name; names >> name;) to.insert(name);
}
}  // namespace

// What it was, where that was more than 0; takes one away.
static int64_t taken(std::atomic<int64_t>& n) {
  int64_t left = n;
  while (left > 0)
    if (n.compare_exchange_weak(left, left - 1)) return left;
  return 0;
}

bool fails(Fault fault) {
  if (fault == Fault::Allocation && taken(failing) > 0) return true;
  if (taken(countdown[int(fault)]) != 1) return false;
  if (fault == Fault::Allocation) failing = more.exchange(0);
  return true;
}

int64_t delay_us() { return delay; }
int64_t delay_copy_us() { return delay_copy; }
int64_t skipped_barrier() { return skipped; }

bool offers(const char* op) {
  std::lock_guard<std::mutex> hold(lock);
  return !hidden.count(op);
}

bool accepts(const char* op) {
  std::lock_guard<std::mutex> hold(lock);
  return libraries.count(op);
}

}  // namespace null

extern "C" __attribute__((visibility("default"))) int32_t strata_null_control(const char* what, const char* value) {
  char* rest = nullptr;
  const int64_t number = std::strtoll(value, &rest, 10);
  if (std::strcmp(what, "fail_allocation") == 0) {
    null::failing = 0;
    null::more = std::strtoll(rest, nullptr, 10);
    null::countdown[int(null::Fault::Allocation)] = number;
  } else if (std::strcmp(what, "fail_kernel") == 0)
    null::countdown[int(null::Fault::Kernel)] = number;
  else if (std::strcmp(what, "flip_bit") == 0)
    null::countdown[int(null::Fault::Bit)] = number;
  else if (std::strcmp(what, "delay_us") == 0)
    null::delay = number;
  else if (std::strcmp(what, "delay_copy_us") == 0)
    null::delay_copy = number;
  else if (std::strcmp(what, "skip_barrier") == 0)
    null::skipped = number;
  else if (std::strcmp(what, "fail_library") == 0)
    null::countdown[int(null::Fault::Library)] = number;
  else if (std::strcmp(what, "fail_graph") == 0)
    null::countdown[int(null::Fault::Graph)] = number;
  else if (std::strcmp(what, "hide") == 0)
    null::take_names(null::hidden, value);
  else if (std::strcmp(what, "library") == 0)
    null::take_names(null::libraries, value);
  else
    return -1;
  return 0;
}
