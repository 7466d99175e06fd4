// Groups of items on one thread: an item has a stack of its own and runs until it waits; then another one runs, in a
// random order between each two barriers. What an item writes too late or reads too early shows in the result.
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "null.h"

namespace null {

namespace {

constexpr size_t kStack = size_t(256) << 10;  // bytes an item

struct Item {
  ucontext_t context;
  int64_t barriers = 0;
  bool done = false;
};

// Of one thread; the group that it runs now.
struct Group {
  std::vector<Item> items;
  char* stacks = nullptr;
  size_t room = 0;
  ucontext_t scheduler;
  int32_t current = 0;
  GroupEntry entry;
  const uint64_t* arguments;
  int64_t first, past;
  uint64_t* scratch;

  ~Group() {
    if (stacks) munmap(stacks, room);
  }
  bool make_room(size_t count) {
    if (items.size() >= count) return true;
    if (stacks) munmap(stacks, room);
    room = count * kStack;
    void* made = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    stacks = made == MAP_FAILED ? nullptr : static_cast<char*>(made);
    items.resize(stacks ? count : 0);
    return stacks;
  }
};
thread_local Group at_hand;

void barrier() {
  Group& g = at_hand;
  Item& mine = g.items[size_t(g.current)];
  if (++mine.barriers == skipped_barrier()) return;
  swapcontext(&mine.context, &g.scheduler);
}

void run_item() {
  Group& g = at_hand;
  const int32_t lane = g.current;
  g.entry(g.arguments, g.first, g.past, lane, g.scratch);
  g.items[size_t(lane)].done = true;
}

}  // namespace

std::string run_groups(GroupEntry entry, const uint64_t* arguments, int64_t first, int64_t past, int32_t items,
                       std::mt19937_64& random) {
  Group& g = at_hand;
  if (!g.make_room(size_t(items))) return "no memory for the stacks of a group";
  // Before the group's memory stands what its items wait by.
  std::vector<uint64_t> memory(1 + 2 * size_t(items));
  for (uint64_t& word : memory) word = random();
  memory[0] = reinterpret_cast<uint64_t>(&barrier);
  g.entry = entry;
  g.arguments = arguments;
  g.first = first;
  g.past = past;
  g.scratch = memory.data() + 1;
  for (int32_t lane = 0; lane < items; ++lane) {
    Item& item = g.items[size_t(lane)];
    item.barriers = 0;
    item.done = false;
    getcontext(&item.context);
    item.context.uc_stack.ss_sp = g.stacks + size_t(lane) * kStack;
    item.context.uc_stack.ss_size = kStack;
    item.context.uc_link = &g.scheduler;
    makecontext(&item.context, run_item, 0);
  }
  std::vector<int32_t> order(static_cast<size_t>(items));
  std::iota(order.begin(), order.end(), 0);
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    for (int32_t lane : order) {
      g.current = lane;
      swapcontext(&g.scheduler, &g.items[size_t(lane)].context);
    }
    const Item& one = g.items[0];
    for (int32_t lane = 1; lane < items; ++lane)
      if (g.items[size_t(lane)].done != one.done || g.items[size_t(lane)].barriers != one.barriers)
        return "items of a group came to different barriers";
    if (one.done) return "";
  }
}

}  // namespace null
