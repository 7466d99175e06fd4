#include "device/unit.h"

#include <algorithm>
#include <cstring>

#include "run/kernels.h"

namespace strata::device {

Unit::Unit(const Plugin& plugin, int index)
    : plugin_(plugin), device_{int8_t(plugin.type), int8_t(index)}, kernels_(plugin, index) {
  check(plugin, plugin.table->queue_create(index, &queue_), "a queue");
  check(plugin, plugin.table->allocate(index, kWords * 4, &words_), "memory for the words of kernels");
  const std::vector<int32_t> zeros(kWords);
  check(plugin, plugin.table->upload(queue_, words_, 0, zeros.data(), kWords * 4), "an upload");
}

// ---- memory

void* Unit::take(size_t size) {
  StrataMemory made = nullptr;
  const StrataStatus status = plugin_.table->allocate(device_.index, size, &made);
  if (status == STRATA_OUT_OF_MEMORY) return nullptr;
  check(plugin_, status, str_cat("memory of ", size, " bytes"));
  ++stats_.allocations;
  return made;
}

void* Unit::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  std::lock_guard<std::recursive_mutex> hold(lock_);
  const size_t size = round(bytes);
  void* block = nullptr;
  if (auto at = cached_.find(size); at != cached_.end()) {
    block = at->second;
    cached_.erase(at);
    stats_.cached_bytes -= size;
  } else if (!(block = take(size))) {
    release_cached();
    block = take(size);
  }
  STRATA_CHECK_KIND(OutOfMemory, block, "allocate: expected ", bytes, " bytes of memory on ", device_,
                    ", got none; live ", stats_.live_bytes, " bytes, cached ", stats_.cached_bytes,
                    " bytes; use smaller tensors or free some");
  stats_.live_bytes += size;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  return block;
}

void Unit::free(void* data, size_t bytes) {
  if (!data) return;
  std::lock_guard<std::recursive_mutex> hold(lock_);
  const size_t size = round(bytes);
  stats_.live_bytes -= size;
  try {
    cached_.emplace(size, data);
    stats_.cached_bytes += size;
  } catch (const std::bad_alloc&) {
    plugin_.table->synchronize(queue_);
    plugin_.table->release(device_.index, static_cast<StrataMemory>(data));
  }
}

// Nothing may use what is given back.
void Unit::release_cached() {
  if (cached_.empty()) return;
  check(plugin_, plugin_.table->synchronize(queue_), "waiting for the queue");
  for (auto& [size, block] : cached_)
    check(plugin_, plugin_.table->release(device_.index, static_cast<StrataMemory>(block)), "the release of memory");
  cached_.clear();
  stats_.cached_bytes = 0;
}

void Unit::empty_cache() {
  std::lock_guard<std::recursive_mutex> hold(lock_);
  release_cached();
}

MemoryStats Unit::stats() {
  std::lock_guard<std::recursive_mutex> hold(lock_);
  return stats_;
}

void Unit::reset_peak() {
  std::lock_guard<std::recursive_mutex> hold(lock_);
  stats_.peak_bytes = stats_.live_bytes;
}

// ---- copies

static StrataMemory handle_of(const void* handle) { return static_cast<StrataMemory>(const_cast<void*>(handle)); }

void Unit::move(void* to, const void* from, size_t bytes) {
  std::lock_guard<std::recursive_mutex> hold(lock_);
  check(plugin_, plugin_.table->copy(queue_, handle_of(to), 0, handle_of(from), 0, bytes), "a copy");
}

void Unit::upload(const Storage& to, int64_t offset, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  std::lock_guard<std::recursive_mutex> hold(lock_);
  check(plugin_, plugin_.table->upload(queue_, handle_of(to.handle()), uint64_t(offset), from, uint64_t(bytes)),
        str_cat("a copy of ", bytes, " bytes to the device"));
}

void Unit::download(void* to, const Storage& from, int64_t offset, int64_t bytes) {
  if (bytes == 0) return;
  Refusal r;
  {
    std::lock_guard<std::recursive_mutex> hold(lock_);
    check(plugin_, plugin_.table->download(queue_, to, handle_of(from.handle()), uint64_t(offset), uint64_t(bytes)),
          str_cat("a copy of ", bytes, " bytes to the host"));
    r = refusal();
  }
  raise(r);
}

// ---- kernels

void Unit::synchronize() {
  Refusal r;
  {
    std::lock_guard<std::recursive_mutex> hold(lock_);
    check(plugin_, plugin_.table->synchronize(queue_), "waiting for the queue");
    r = refusal();
  }
  raise(r);
}

Unit::Refusal Unit::refusal() {
  if (asked_.empty()) return {};
  const std::vector<Asked> asked = std::exchange(asked_, {});
  std::vector<int32_t> said(asked.size());
  const uint64_t bytes = 4 * asked.size();
  check(plugin_, plugin_.table->download(queue_, said.data(), words_, 0, bytes), "reading the words of kernels");
  for (size_t i = 0; i < said.size(); ++i) {
    if (!said[i]) continue;
    const std::vector<int32_t> zeros(said.size());
    check(plugin_, plugin_.table->upload(queue_, words_, 0, zeros.data(), bytes), "an upload");
    return {said[i], asked[i]};
  }
  return {};
}

void Unit::raise(const Refusal& r) {
  if (!r.said) return;
  const std::string where = r.by.mark ? str_cat(r.by.op, " (called at ", source_text(r.by.mark), ")") : r.by.op;
  eager::raise_status(r.said, where.c_str(), r.by.outside);
}

void Unit::launch(const KernelNest& k, const Bound& b, const Blame& by) {
  int64_t items = 1;
  for (int r : k.items) items *= b.extent[size_t(r)];
  if (items == 0) return;
  // Before the lock: a compiler takes its time, and may have a warning to give.
  const StrataKernel kernel = kernels_.get(k);
  std::unique_lock<std::recursive_mutex> hold(lock_);
  while (asked_.size() == kWords) {
    hold.unlock();
    synchronize();
    hold.lock();
  }
  std::vector<StrataArgument> arguments;
  arguments.reserve(k.parameters.size() + 1);
  auto number = [&](const void* bytes, int64_t width) {
    StrataArgument a{uint32_t(width), 0, nullptr, 0};
    std::memcpy(&a.value, bytes, size_t(width));
    arguments.push_back(a);
  };
  auto memory = [&](const void* handle) { arguments.push_back({0, 0, handle_of(handle), 0}); };
  size_t stride = 0;
  for (const lower::NestParameter& p : k.parameters) {
    const size_t i = size_t(p.index);
    switch (p.kind) {
      case lower::NestParameter::Memory:
        memory(b.operands[i]->storage()->handle());
        break;
      case lower::NestParameter::Offset:
        number(&b.offset[i], 8);
        break;
      case lower::NestParameter::Extent:
        number(&b.extent[i], 8);
        break;
      case lower::NestParameter::Stride:
        number(&b.stride[stride++], 8);
        break;
      case lower::NestParameter::Scalar:
        number(static_cast<const char*>(b.scalars) + 16 * i + itemsize(p.type) * p.part, itemsize(p.type));
        break;
      case lower::NestParameter::Word: {
        const int64_t word = int64_t(asked_.size());
        asked_.push_back({by.op, take_source_mark(), by.outside});
        number(&word, 8);
        break;
      }
      default:
        memory(words_);
    }
  }
  check(plugin_,
        plugin_.table->launch(queue_, kernel, arguments.data(), uint32_t(arguments.size()), items, uint32_t(k.group)),
        str_cat("launching ", by.op));
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
thread_local int current[kMaxDeviceTypes];
}  // namespace

int current_index(int device_type) { return current[device_type]; }
void set_current(Device device) { current[device.type] = unit(device).device().index; }

int count(const Plugin& plugin) { return plugin.table->count(); }

Unit& unit(Device device) {
  const Plugin* plugin = plugin_of(device.type);
  STRATA_CHECK(plugin, "device: no plugin offers ", device);
  const int index = device.index < 0 ? current[device.type] : device.index, n = count(*plugin);
  STRATA_CHECK(index < n, "device: expected a number below ", n, ", the number of devices of ", plugin->table->name,
               ", got ", device);
  Units& u = units();
  std::lock_guard<std::mutex> hold(u.lock);
  auto& made = u.all[{device.type, index}];
  if (!made) made = std::make_unique<Unit>(*plugin, index);
  return *made;
}

}  // namespace strata::device
