#include "core/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "base/error.h"
#include "base/pool.h"

namespace strata {

namespace {

// Up to 4 KiB: thread-local free lists by power of two. Above: one shared list by rounded size.
constexpr size_t kSmallLimit = 4096;
constexpr size_t kHugePage = size_t(2) << 20;

template <size_t Bytes>
class SmallList {
 public:
  static void* take() {
    Head& h = head();
    if (Link* p = h.first) {
      h.first = p->next;
      --h.count;
      return p;
    }
    return std::aligned_alloc(64, Bytes);
  }
  static void give(void* p) {
    Head& h = head();
    if (h.count < (size_t(1) << 20) / Bytes) {
      Link* link = static_cast<Link*>(p);
      link->next = h.first;
      h.first = link;
      ++h.count;
    } else {
      std::free(p);
    }
  }

 private:
  struct Link {
    Link* next;
  };
  struct Head {
    Link* first;
    size_t count;
  };
  static Head& head() {
    static thread_local Head h STRATA_HOT_TLS = {nullptr, 0};
    return h;
  }
};

void* take_small(size_t bytes) {
#ifdef STRATA_SANITIZED
  return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
#else
  if (bytes <= 64) return SmallList<64>::take();
  if (bytes <= 256) return SmallList<256>::take();
  if (bytes <= 1024) return SmallList<1024>::take();
  return SmallList<4096>::take();
#endif
}

void give_small(void* p, size_t bytes) {
#ifdef STRATA_SANITIZED
  std::free(p);
#else
  if (bytes <= 64) return SmallList<64>::give(p);
  if (bytes <= 256) return SmallList<256>::give(p);
  if (bytes <= 1024) return SmallList<1024>::give(p);
  SmallList<4096>::give(p);
#endif
}

class CpuAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    void* p = bytes <= kSmallLimit ? take_small(bytes) : take_large(round(bytes));
    if (STRATA_UNLIKELY(!p)) {
      cpu_empty_cache();
      p = bytes <= kSmallLimit ? take_small(bytes) : take_large(round(bytes));
    }
    STRATA_CHECK_KIND(OutOfMemory, p, "allocate: expected ", bytes, " bytes of memory, got none; live ", live_.load(),
                      " bytes, cached ", cached_.load(), " bytes; use smaller tensors or free some");
    return p;
  }
  void free(void* data, size_t bytes) override {
    if (!data) return;
    if (bytes <= kSmallLimit) return give_small(data, bytes);
    give_large(data, round(bytes));
  }
  Device device() const override { return Device{}; }

  void empty_cache() {
    std::lock_guard<std::mutex> hold(lock_);
    for (auto& [size, p] : cache_) release(p, size);
    cache_.clear();
    cached_ = 0;
  }
  MemoryStats stats() const { return {live_, cached_, peak_, system_calls_}; }
  void reset_peak() { peak_ = live_.load(); }

 private:
  // Rounding bounds the number of distinct sizes, so that a block fits the next request of about its size.
  static size_t round(size_t bytes) {
    size_t step = bytes >= (size_t(16) << 20) ? kHugePage : bytes >= (size_t(1) << 18) ? size_t(1) << 16 : 4096;
    return bytes > SIZE_MAX - step ? 0 : (bytes + step - 1) / step * step;
  }
  void* take_large(size_t size) {
    if (size == 0 || size > (size_t(1) << 47)) return nullptr;
    void* p = nullptr;
#ifndef STRATA_SANITIZED
    {
      std::lock_guard<std::mutex> hold(lock_);
      // The last one that was given back: the caches still know it.
      auto it = cache_.upper_bound(size);
      if (it != cache_.begin() && (--it)->first == size) {
        p = it->second;
        cached_ -= size;
        cache_.erase(it);
      }
    }
#endif
    if (!p) {
      ++system_calls_;
      // Not aligned_alloc, which takes multiples of the alignment only.
      if (posix_memalign(&p, size >= kHugePage ? kHugePage : 64, size) != 0) p = nullptr;
      if (p && size >= kHugePage) madvise(p, size, MADV_HUGEPAGE);
    }
    if (p) {
      uint64_t live = live_ += size;
      if (live > peak_) peak_ = live;
    }
    return p;
  }
  void give_large(void* p, size_t size) {
    live_ -= size;
#ifndef STRATA_SANITIZED
    if (cached_ + size <= kCacheLimit) {
      // Called by destructors, so nothing may be thrown: where there is no memory for a note, the block is not kept.
      try {
        std::lock_guard<std::mutex> hold(lock_);
        cache_.emplace(size, p);
        cached_ += size;
        return;
      } catch (const std::bad_alloc&) {
      }
    }
#endif
    release(p, size);
  }
  static void release(void* p, size_t) { std::free(p); }

  static constexpr uint64_t kCacheLimit = uint64_t(4) << 30;
  std::mutex lock_;
  std::multimap<size_t, void*> cache_;
  std::atomic<uint64_t> live_{0}, cached_{0}, peak_{0}, system_calls_{0};
};

CpuAllocator& allocator() {
  static CpuAllocator* a = new CpuAllocator;  // outlives every tensor
  return *a;
}

}  // namespace

Allocator& cpu_allocator() { return allocator(); }
MemoryStats cpu_memory_stats() { return allocator().stats(); }
void cpu_reset_peak() { allocator().reset_peak(); }
void cpu_empty_cache() { allocator().empty_cache(); }

}  // namespace strata
