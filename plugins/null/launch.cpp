#include <algorithm>
#include <numeric>

#include "null.h"

namespace null {

namespace {

std::vector<int64_t> shuffled(int64_t count, std::mt19937_64& random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

}  // namespace

Launch::Launch(Kernel k, const StrataArgument* arguments, uint32_t count, int64_t n, uint32_t g)
    : kernel(k), items(n), group(g) {
  slots = sdk::slots_of(arguments, count, [&](StrataMemory handle) {
    const Memory memory = sdk::handle_cast<Memory>(handle);
    char* found = address(memory);
    if (!found) sdk::fail(STRATA_INVALID, "an argument is no memory of the device");
    if (memories.empty()) first = found;
    memories.push_back({memory, serial(memory)});
    return found;
  });
}

void Launch::ask_faults() {
  failing = fails(Fault::Kernel);
  flips = fails(Fault::Bit);
}

bool Launch::is_stale() const {
  return std::any_of(memories.begin(), memories.end(), [](const Taken& t) { return serial(t.memory) != t.serial; });
}

std::string Launch::run(std::mt19937_64& random) const {
  if (failing) return "a kernel failed: a fault that was asked for";
  std::string failed;
  if (group) {
    constexpr int64_t kTogether = 2;  // also in the memory that one before them has left
    for (int64_t p : shuffled((items + kTogether - 1) / kTogether, random))
      if (failed.empty())
        failed = run_groups(reinterpret_cast<GroupEntry>(kernel), slots.data(), p * kTogether,
                            std::min(items, (p + 1) * kTogether), int32_t(group), random);
  } else {
    // Pieces in a shuffled order: what an item needs of another one shows.
    constexpr int64_t kPieces = 24;
    const Entry entry = reinterpret_cast<Entry>(kernel);
    const int64_t pieces = std::min(kPieces, items);
    for (int64_t p : shuffled(pieces, random)) entry(slots.data(), items * p / pieces, items * (p + 1) / pieces);
  }
  if (flips && first) *first ^= 1;
  return failed;
}

}  // namespace null
