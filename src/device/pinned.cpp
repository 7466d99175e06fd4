#include "device/pinned.h"

#include <bit>

namespace strata::device {

void* Pinned::allocate(size_t bytes) {
  const size_t size = std::bit_ceil(std::max<size_t>(bytes, 512));
  std::lock_guard<std::mutex> hold(lock_);
  settle();
  void* data = nullptr;
  if (const auto at = cached_.find(size); at != cached_.end()) {
    data = at->second;
    cached_.erase(at);
  } else {
    auto take = [&] { return plugin_.table->host_allocate(of_.index, size, &data); };
    StrataStatus status = take();
    if (status == STRATA_OUT_OF_MEMORY && !cached_.empty()) {
      flush();
      status = take();
    }
    check(plugin_, status, str_cat("pinned memory of ", bytes, " bytes"));
  }
  live_[static_cast<char*>(data)] = {size, {}};
  any_ = true;
  return data;
}

void Pinned::free(void* data, size_t) {
  std::lock_guard<std::mutex> hold(lock_);
  if (auto block = live_.extract(static_cast<const char*>(data))) freed_.insert(std::move(block));
  settle();
}

bool Pinned::holds(const void* data) {
  if (!any_.load(std::memory_order_relaxed)) return false;
  std::lock_guard<std::mutex> hold(lock_);
  return find(data) != live_.end();
}

void Pinned::release_cached() {
  std::lock_guard<std::mutex> hold(lock_);
  settle();
  flush();
}

void Pinned::used(const void* data, Queue& queue) {
  std::unique_ptr<Event> event;
  try {
    event = std::make_unique<Event>(plugin_, of_, false);
    event->record(queue);
  } catch (const std::exception&) {
    return queue.drain();
  }
  std::lock_guard<std::mutex> hold(lock_);
  const auto at = find(data);
  if (at == live_.end()) return;
  if (all_over(at->second.until)) at->second.until.clear();
  at->second.until.push_back(std::move(event));
}

Pinned::Blocks::iterator Pinned::find(const void* data) {
  const char* at = static_cast<const char*>(data);
  auto next = live_.upper_bound(at);
  if (next == live_.begin()) return live_.end();
  --next;
  return at < next->first + next->second.size ? next : live_.end();
}

// Blocks without copies are there for the next who asks.
void Pinned::settle() {
  for (auto at = freed_.begin(); at != freed_.end();) {
    auto& [data, block] = *at;
    if (!all_over(block.until)) {
      ++at;
      continue;
    }
    cached_.emplace(block.size, const_cast<char*>(data));
    at = freed_.erase(at);
  }
}

void Pinned::flush() {
  while (!cached_.empty()) {
    void* const data = cached_.begin()->second;
    cached_.erase(cached_.begin());
    check(plugin_, plugin_.table->host_release(of_.index, data), "the release of pinned memory");
  }
}

}  // namespace strata::device
