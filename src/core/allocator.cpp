#include "core/allocator.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "base/error.h"
#include "base/pool.h"
#include "core/regions.h"

namespace strata {

namespace {

// Up to 4 KiB: thread-local free lists by power of two. Above: one shared list by rounded size, of blocks that are cut
// out of regions below the size of a huge page and come from the system from there on.
constexpr size_t kSmallLimit = 4096;

template <size_t Bytes>
struct SmallList {
  static constexpr size_t kMost = (size_t(1) << 20) / Bytes;
  using List = FreeList<Bytes, kMost, std::free>;
  static void* take() {
    void* p = List::take();
    return p ? p : std::aligned_alloc(64, Bytes);
  }
  static void give(void* p) { List::give(p); }
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
    while (!cache_.empty()) {
      const auto [size, p] = *cache_.begin();
      if (size < kHugePage && !kSanitized) {
        hollow_.insert(cache_.extract(cache_.begin()));
      } else {
        std::free(p);
        cache_.erase(cache_.begin());
      }
    }
    cached_ = 0;
    regions_.give_back(hollow_);
    for (const auto& [size, p] : hollow_) Regions::hollow(p, size);
  }
  // A child's copy of the lock would stay closed where another thread held it.
  void before_fork() { lock_.lock(); }
  void after_fork() { lock_.unlock(); }
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
    if (!kSanitized) {
      std::lock_guard<std::mutex> hold(lock_);
      if ((p = last(cache_, size)))
        cached_ -= size;
      else if (size < kHugePage && !(p = last(hollow_, size)))
        p = regions_.cut(size, system_calls_);
    }
    if (!p && (size >= kHugePage || kSanitized)) {
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
  // The one of this size that was put in last: the caches still know it.
  static void* last(Blocks& from, size_t size) {
    auto it = from.upper_bound(size);
    if (it == from.begin() || (--it)->first != size) return nullptr;
    void* p = it->second;
    from.erase(it);
    return p;
  }
  // Called by destructors, so nothing may be thrown: where there is no memory for a note, the block is not kept.
  void give_large(void* p, size_t size) {
    live_ -= size;
    if (kSanitized) return std::free(p);
    try {
      std::lock_guard<std::mutex> hold(lock_);
      if (cached_ + size <= kCacheLimit) {
        cache_.emplace(size, p);
        cached_ += size;
        return;
      }
      if (size < kHugePage) {
        Regions::hollow(p, size);
        hollow_.emplace(size, p);
      }
    } catch (const std::bad_alloc&) {
    }
    if (size >= kHugePage) std::free(p);
  }

  static constexpr uint64_t kCacheLimit = uint64_t(4) << 30;
#ifdef STRATA_SANITIZED
  static constexpr bool kSanitized = true;
#else
  static constexpr bool kSanitized = false;
#endif
  std::mutex lock_;
  Regions regions_;
  Blocks cache_, hollow_;  // with their memory; places in regions without any
  std::atomic<uint64_t> live_{0}, cached_{0}, peak_{0}, system_calls_{0};
};

CpuAllocator& allocator() {
  static CpuAllocator* a = new CpuAllocator;  // outlives every tensor
  return *a;
}

// As early as may be: who else waits before a fork may wait for threads that allocate, and is to do so first.
[[maybe_unused]] const int watched = pthread_atfork([] { allocator().before_fork(); }, [] { allocator().after_fork(); },
                                                    [] { allocator().after_fork(); });

}  // namespace

Allocator& cpu_allocator() { return allocator(); }
MemoryStats cpu_memory_stats() { return allocator().stats(); }
void cpu_reset_peak() { allocator().reset_peak(); }
void cpu_empty_cache() { allocator().empty_cache(); }

}  // namespace strata
