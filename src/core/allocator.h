// Allocators of tensor memory. The CPU's caches blocks of every size: a freed large block keeps its pages, so that the
// next result of that size does not fault them in again.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device.h"

namespace strata {

class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least `bytes` bytes at a multiple of 64; null for 0. Raises OutOfMemory. Of memory that the host can't reach it
  // is a handle.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* data, size_t bytes) = 0;  // `bytes` as it was asked for
  virtual Device device() const = 0;
  // Of memory that the host can't reach: from one handle to another.
  virtual void move(void* to, const void* from, size_t bytes);
};

struct MemoryStats {
  uint64_t live_bytes = 0;    // handed out
  uint64_t cached_bytes = 0;  // kept for reuse
  uint64_t peak_bytes = 0;    // highest live_bytes since reset_peak
  uint64_t allocations = 0;   // calls that reached the system
};

Allocator& cpu_allocator();
MemoryStats cpu_memory_stats();  // counts blocks above the thread caches' sizes
void cpu_reset_peak();
void cpu_empty_cache();  // gives cached large blocks back to the system

}  // namespace strata
