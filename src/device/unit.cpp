#include "device/unit.h"

#include <pthread.h>

#include <algorithm>
#include <exception>

namespace strata::device {

namespace {
// In a child of a process whose devices were at work: their threads and their memory are the parent's.
std::atomic<bool> forked{false};

void check_process(Device device) {
  STRATA_CHECK(!forked, "Cannot re-initialize ", device_type_name(device.type),
               " in forked subprocess. To use it with ", "multiprocessing, you must use the 'spawn' start method");
}
}  // namespace

Unit::Unit(const Plugin& plugin, int index)
    : plugin_(plugin),
      device_{int8_t(plugin.type), int8_t(index)},
      memory_(*this),
      pinned_(plugin, device_),
      kernels_(plugin, index) {
  queue(0);
  [[maybe_unused]] static const int watched = pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

static StrataMemory handle_of(const void* handle) { return static_cast<StrataMemory>(const_cast<void*>(handle)); }

// ---- queues; they live for ever

Queue& Unit::queue(int number) {
  check_process(device_);
  std::atomic<Queue*>& at = queues_[size_t(number)];
  if (Queue* there = at.load(std::memory_order_acquire)) return *there;
  std::lock_guard<std::mutex> hold(lock_);
  if (Queue* there = at.load(std::memory_order_acquire)) return *there;
  auto* made = new Queue(plugin_, device_, number);
  if (number) several_ = true;
  at.store(made, std::memory_order_release);
  return *made;
}

int Unit::next_queue() {
  int number = 0;
  {
    std::lock_guard<std::mutex> hold(lock_);
    number = last_made_ = last_made_ % (kMaxStreams - 1) + 1;
  }
  return queue(number).number();
}

void Unit::synchronize() {
  std::exception_ptr first;
  for (const auto& q : queues_) {
    Queue* queue = q.load(std::memory_order_acquire);
    if (!queue) continue;
    try {
      queue->synchronize();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void Unit::drain() noexcept {
  for (const auto& q : queues_)
    if (Queue* queue = q.load(std::memory_order_acquire)) queue->drain();
}

// ---- memory

void* Unit::allocate(size_t bytes) {
  if (!bytes) return nullptr;
  check_process(device_);
  try {
    return memory_.allocate(bytes, current_stream(device_));
  } catch (const Error& e) {
    // A batch has memory that is free once its launches are given.
    if (e.kind() != ErrorKind::OutOfMemory || !queue().settle()) throw;
  }
  return memory_.allocate(bytes, current_stream(device_));
}

void Unit::free(void* data, size_t) {
  if (data && !forked) memory_.free(data);
}

void Unit::move(void* to, const void* from, size_t bytes) {
  Queue& q = queue();
  use(to, q);
  use(from, q);
  q.copy(handle_of(to), handle_of(from), int64_t(bytes));
}

void Unit::upload(const Storage& to, int64_t offset, const void* from, int64_t bytes, bool later) {
  if (bytes == 0) return;
  Queue& q = queue();
  use(to.handle(), q);
  if (!pinned_.holds(from)) return q.upload(handle_of(to.handle()), offset, from, bytes);
  q.upload_later(handle_of(to.handle()), offset, from, bytes);
  if (later)
    pinned_.used(from, q);
  else
    q.synchronize();
}

void Unit::download(void* to, const Storage& from, int64_t offset, int64_t bytes, bool later) {
  if (bytes == 0) return;
  Queue& q = queue();
  if (!later || !pinned_.holds(to)) return q.download(to, handle_of(from.handle()), offset, bytes);
  use(from.handle(), q);
  q.download_later(to, handle_of(from.handle()), offset, bytes);
  pinned_.used(to, q);
}

bool Unit::copy_from(Unit& other, const Storage& to, const Storage& from, int64_t offset, int64_t bytes) {
  if (!plugin_.table->peer_copy || &plugin_ != &other.plugin_) return false;
  if (bytes == 0) return true;
  other.queue().synchronize();
  Queue& q = queue();
  use(to.handle(), q);
  q.copy_from(handle_of(to.handle()), other.device_, handle_of(from.handle()), offset, bytes);
  return true;
}

void Unit::launch(const KernelNest& k, const Bound& b, const Blame& by) {
  int64_t items = 1;
  for (int r : k.items) items *= b.extent[size_t(r)];
  if (items == 0) return;
  launch(kernels_.get(k), k, b, items, by);
}

void Unit::launch(StrataKernel kernel, const KernelNest& k, const Bound& b, int64_t items, const Blame& by) {
  launches_.fetch_add(1, std::memory_order_relaxed);
  Queue& q = queue();
  for (const Storage* s : b.operands) use(s->handle(), q);
  q.launch(kernel, k, b, items, by);
}

void Unit::run(StrataOperator op, const std::vector<StrataOperand>& results,
               const std::vector<StrataOperand>& arguments, const std::string& name) {
  launches_.fetch_add(1, std::memory_order_relaxed);
  Queue& q = queue();
  for (const auto* list : {&results, &arguments})
    for (const StrataOperand& o : *list)
      if (o.memory) use(o.memory, q);
  q.run(op, results, arguments, name);
}

// ---- devices

namespace {
struct Units {
  std::mutex lock;
  std::map<std::pair<int, int>, std::unique_ptr<Unit>> all;  // for ever
};
Units& units() {
  static Units* u = new Units;
  return *u;
}

void wait_on_device(Device device, int waiting, int waited) {
  Unit& u = unit(device);
  Event event(u.plugin(), device, false);
  u.queue(waited).settle();
  u.queue(waiting).settle();
  event.record(u.queue(waited));
  event.wait(u.queue(waiting));
}
[[maybe_unused]] const bool waits = (set_stream_wait(wait_on_device), true);
}  // namespace

bool is_pinned(const void* data) {
  if (forked) return false;
  Units& u = units();
  std::lock_guard<std::mutex> hold(u.lock);
  return std::any_of(u.all.begin(), u.all.end(), [&](const auto& made) { return made.second->pinned().holds(data); });
}

int count(const Plugin& plugin) { return plugin.table->count(); }

Unit& unit(Device device) {
  check_process(device);
  const Plugin* plugin = plugin_of(device.type);
  STRATA_CHECK(plugin, "device: no plugin offers ", device);
  const int index = numbered(device).index, n = count(*plugin);
  STRATA_CHECK(n > 0, "device: got ", device, ", and the plugin of ", plugin->table->name,
               " finds no device here; python -m strata.doctor says why");
  STRATA_CHECK(index < n, "device: expected a number below ", n, ", the number of devices of ", plugin->table->name,
               ", got ", device);
  Units& u = units();
  std::lock_guard<std::mutex> hold(u.lock);
  auto& made = u.all[{device.type, index}];
  if (!made) made = std::make_unique<Unit>(*plugin, index);
  return *made;
}

}  // namespace strata::device
