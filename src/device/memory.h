// The memory of one device. Blocks are kept for reuse by the queue that they were allocated on: its work runs in order,
// so that a block may be given again at once. A block that other queues used, too, waits for what these had been given
// when it was freed.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/span.h"
#include "core/allocator.h"
#include "device/queue.h"

namespace strata::device {

class Unit;

// Memory that is live, by the line that asked for it.
struct Owner {
  SourceMark mark;
  uint64_t bytes = 0;
  int64_t blocks = 0;
};

class Memory {
 public:
  explicit Memory(Unit& unit) : unit_(unit) {}

  // On a queue, by number.
  void* allocate(size_t bytes, int queue);
  void free(void* data);
  // The queue uses the block, too.
  void keep(const void* data, int queue);
  MemoryStats stats();
  void reset_peak();
  void release_cached();
  std::vector<Owner> owners();  // the largest first
  // How often memory was given back to the device. Where it is what it was, a handle that is live is the same memory.
  int64_t released() const { return released_.load(); }

 private:
  struct Block {
    size_t size;
    int queue;
    uint64_t others;  // queues by bit
    SourceMark mark;
  };
  struct Busy {
    void* data;
    size_t size;
    int queue;
    std::vector<std::unique_ptr<Event>> until;
  };
  static size_t round(size_t bytes) {
    return bytes < 1 << 20 ? (bytes + 511) / 512 * 512 : (bytes + 0xfffff) >> 20 << 20;
  }
  void* take(size_t size);
  void settle();
  void flush();
  std::string report();

  Unit& unit_;
  std::mutex lock_;
  std::unordered_map<const void*, Block> live_;
  std::map<std::pair<int, size_t>, std::vector<void*>> cached_;
  std::vector<Busy> busy_;
  MemoryStats stats_;
  std::atomic<int64_t> released_{0};
};

}  // namespace strata::device
