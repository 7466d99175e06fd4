// Memory of the host that a device's copies reach by themselves, so that they need not wait. A block that is freed is
// given again when the copies that use it are over, and back to the system when memory is short or somebody asks for
// it.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "core/allocator.h"
#include "device/queue.h"

namespace strata::device {

class Pinned final : public Allocator {
 public:
  Pinned(const Plugin& plugin, Device of) : plugin_(plugin), of_(of) {}

  bool offered() const { return plugin_.table->host_allocate; }
  void* allocate(size_t bytes) override;
  void free(void* data, size_t bytes) override;
  void release_cached();
  Device device() const override { return Device{}; }

  bool holds(const void* data);
  // What the queue has been given so far uses the block.
  void used(const void* data, Queue& queue);

 private:
  struct Block {
    size_t size;
    std::vector<std::unique_ptr<Event>> until;
  };
  using Blocks = std::map<const char*, Block>;
  Blocks::iterator find(const void* data);
  void settle();
  void flush();

  const Plugin& plugin_;
  const Device of_;
  std::atomic<bool> any_{false};
  std::mutex lock_;
  Blocks live_;
  Blocks freed_;  // until their copies are over
  std::multimap<size_t, void*> cached_;
};

}  // namespace strata::device
