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
//
//   "fail_event", "N M": the N-th asking of an event and the M behind it; "fail_copy", "N": the N-th download
// It gives 0, or -1 for what it does not know.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <sstream>

#include "null.h"

namespace null {

namespace {
std::atomic<int64_t> countdown[7];
std::atomic<int64_t> more[7], failing[7];  // behind the N-th
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
  const int f = int(fault);
  if (taken(failing[f]) > 0) return true;
  if (taken(countdown[f]) != 1) return false;
  failing[f] = more[f].exchange(0);
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

namespace {
struct Named {
  const char* name;
  Fault fault;
};
constexpr Named kFaults[] = {{"fail_allocation", Fault::Allocation},
                             {"fail_kernel", Fault::Kernel},
                             {"flip_bit", Fault::Bit},
                             {"fail_library", Fault::Library},
                             {"fail_graph", Fault::Graph},
                             {"fail_event", Fault::Event},
                             {"fail_copy", Fault::Copy}};
}  // namespace

static bool set(const std::string& what, const char* value) {
  char* rest = nullptr;
  const int64_t number = std::strtoll(value, &rest, 10);
  for (const Named& n : kFaults) {
    if (what != n.name) continue;
    failing[int(n.fault)] = 0;
    more[int(n.fault)] = std::strtoll(rest, nullptr, 10);
    countdown[int(n.fault)] = number;
    return true;
  }
  if (what == "delay_us")
    delay = number;
  else if (what == "delay_copy_us")
    delay_copy = number;
  else if (what == "skip_barrier")
    skipped = number;
  else if (what == "hide")
    take_names(hidden, value);
  else if (what == "library")
    take_names(libraries, value);
  else
    return false;
  return true;
}

}  // namespace null

extern "C" __attribute__((visibility("default"))) int32_t strata_null_control(const char* what, const char* value) {
  return null::set(what, value) ? 0 : -1;
}
