#include "device/memory.h"

#include <algorithm>

#include "device/unit.h"

namespace strata::device {

void* Memory::take(size_t size) {
  const Plugin& plugin = unit_.plugin();
  StrataMemory made = nullptr;
  const StrataStatus status = plugin.table->allocate(unit_.device().index, size, &made);
  if (status == STRATA_OUT_OF_MEMORY) return nullptr;
  check(plugin, status, str_cat("memory of ", size, " bytes"));
  ++stats_.allocations;
  return made;
}

void* Memory::allocate(size_t bytes, int queue) {
  const size_t size = round(bytes);
  const SourceMark mark = take_source_mark();
  std::unique_lock<std::mutex> hold(lock_);
  settle();
  void* block = nullptr;
  if (auto at = cached_.find({queue, size}); at != cached_.end() && !at->second.empty()) {
    block = at->second.back();
    at->second.pop_back();
    stats_.cached_bytes -= size;
  } else if (!(block = take(size))) {
    flush();
    block = take(size);
  }
  if (!block) {
    const MemoryStats s = stats_;
    hold.unlock();
    throw_error(ErrorKind::OutOfMemory, str_cat("allocate: expected ", bytes, " bytes of memory on ", unit_.device(),
                                                ", got none; live ", s.live_bytes, " bytes, cached ", s.cached_bytes,
                                                " bytes", report(), "; use smaller tensors or free some"));
  }
  live_[block] = {size, queue, 0, mark};
  stats_.live_bytes += size;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  return block;
}

void Memory::keep(const void* data, int queue) {
  std::lock_guard<std::mutex> hold(lock_);
  const auto at = live_.find(data);
  if (at != live_.end() && at->second.queue != queue) at->second.others |= uint64_t(1) << queue;
}

void Memory::free(void* data) {
  std::lock_guard<std::mutex> hold(lock_);
  const auto at = live_.find(data);
  if (at == live_.end()) return;
  const Block b = at->second;
  live_.erase(at);
  stats_.live_bytes -= b.size;
  stats_.cached_bytes += b.size;
  Busy busy{data, b.size, b.queue, {}};
  for (int q = 0; q < kMaxStreams; ++q) {
    if (!(b.others >> q & 1)) continue;
    try {
      auto event = std::make_unique<Event>(unit_.plugin(), unit_.device(), false);
      event->record(unit_.queue(q));
      busy.until.push_back(std::move(event));
    } catch (const std::exception&) {
      unit_.queue(q).drain();
    }
  }
  if (busy.until.empty())
    cached_[{b.queue, b.size}].push_back(data);
  else
    busy_.push_back(std::move(busy));
}

// Blocks that no other queue uses any more are their own queue's again. An event that fails says nothing: its block
// stays busy, and the others are looked at first.
void Memory::settle() {
  for (size_t i = 0; i < busy_.size();) {
    Busy& b = busy_[i];
    if (!all_over(b.until)) {
      ++i;
      continue;
    }
    cached_[{b.queue, b.size}].push_back(b.data);
    if (&b != &busy_.back()) b = std::move(busy_.back());
    busy_.pop_back();
  }
}

// Gives all that is cached back to the device. Nothing may use it then; what fails meanwhile is told later.
void Memory::flush() {
  if (cached_.empty() && busy_.empty()) return;
  unit_.drain();
  for (const Busy& b : busy_) cached_[{b.queue, b.size}].push_back(b.data);
  busy_.clear();
  for (auto& [key, blocks] : cached_) {
    while (!blocks.empty()) {
      void* const data = blocks.back();
      blocks.pop_back();
      stats_.cached_bytes -= key.second;
      ++released_;
      check(unit_.plugin(), unit_.plugin().table->release(unit_.device().index, static_cast<StrataMemory>(data)),
            "the release of memory");
    }
  }
  cached_.clear();
}

void Memory::release_cached() {
  std::lock_guard<std::mutex> hold(lock_);
  flush();
}

MemoryStats Memory::stats() {
  std::lock_guard<std::mutex> hold(lock_);
  return stats_;
}

void Memory::reset_peak() {
  std::lock_guard<std::mutex> hold(lock_);
  stats_.peak_bytes = stats_.live_bytes;
}

std::vector<Owner> Memory::owners() {
  std::map<std::pair<const void*, int32_t>, Owner> by_line;
  {
    std::lock_guard<std::mutex> hold(lock_);
    for (const auto& [data, b] : live_) {
      Owner& o = by_line[{b.mark.code, b.mark.position}];
      o.mark = b.mark;
      o.bytes += b.size;
      ++o.blocks;
    }
  }
  std::vector<Owner> out;
  for (const auto& [line, o] : by_line) out.push_back(o);
  std::stable_sort(out.begin(), out.end(), [](const Owner& a, const Owner& b) { return a.bytes > b.bytes; });
  return out;
}

std::string Memory::report() {
  constexpr size_t kShown = 5;
  const std::vector<Owner> all = owners();
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), kShown); ++i)
    text += str_cat(i ? ", " : "; the most have: ", all[i].bytes, " bytes in ", all[i].blocks, " blocks from ",
                    source_text(all[i].mark));
  return text;
}

}  // namespace strata::device
