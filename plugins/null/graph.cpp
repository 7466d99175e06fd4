// Graphs: launches that are kept. A replay is one piece of work of its queue; it looks whether each memory is still the
// one that the graph was told of, so that a host which takes a handle for its memory is found out.
//
// strata_null_replays() counts the replays, strata_null_changes() the launches that were told anew.
#include <atomic>
#include <utility>

#include "null.h"

namespace null {

namespace {
std::atomic<int64_t> replays{0}, changes{0};
}

Graph::Graph(int32_t device, const StrataLaunch* launches, uint32_t count) {
  check_device(device);
  if (fails(Fault::Graph)) sdk::fail(STRATA_FAILED, "a graph failed: a fault that was asked for");
  for (uint32_t k = 0; k < count; ++k) {
    const StrataLaunch& l = sdk::launch_at(launches, k);
    launches_.emplace_back(sdk::handle_cast<Kernel>(l.kernel), l.arguments, l.count, l.items, l.group);
  }
}

void Graph::change(uint32_t number, const StrataArgument* arguments) {
  if (number >= launches_.size()) sdk::fail(STRATA_INVALID, "the graph has no launch of that number");
  Launch& l = launches_[number];
  l = Launch(l.kernel, arguments, uint32_t(l.slots.size()), l.items, l.group);
  ++changes;
}

void Graph::launch(Queue& queue) {
  if (fails(Fault::Graph)) sdk::fail(STRATA_FAILED, "a graph failed: a fault that was asked for");
  ++replays;
  for (Launch& l : launches_) l.ask_faults();
  queue.add_seeded([launches = launches_](std::mt19937_64& random) {
    std::string failed;
    for (const Launch& l : launches) {
      std::string why = l.is_stale() ? "a graph was replayed with memory that was released" : l.run(random);
      if (failed.empty()) failed = std::move(why);
    }
    return failed;
  });
}

}  // namespace null

extern "C" __attribute__((visibility("default"))) int64_t strata_null_replays() { return null::replays; }
extern "C" __attribute__((visibility("default"))) int64_t strata_null_changes() { return null::changes; }
