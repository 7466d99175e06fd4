// One device of a plugin, as the host holds it: its queues, its memory, its kernels. Work goes to the current queue of
// the thread that gives it (core/stream.h).
#pragma once
#include <array>

#include "core/stream.h"
#include "device/kernels.h"
#include "device/memory.h"
#include "device/pinned.h"
#include "device/queue.h"

namespace strata::device {

class Unit final : public Allocator {
 public:
  Unit(const Plugin& plugin, int index);

  void* allocate(size_t bytes) override;
  void free(void* data, size_t bytes) override;
  Device device() const override { return device_; }
  void move(void* to, const void* from, size_t bytes) override;
  Memory& memory() { return memory_; }
  Pinned& pinned() { return pinned_; }

  // `later`: they don't wait where the host's memory is pinned.
  void upload(const Storage& to, int64_t offset, const void* from, int64_t bytes, bool later = false);
  void download(void* to, const Storage& from, int64_t offset, int64_t bytes, bool later = false);
  // From another device of the plugin; false where they can't.
  bool copy_from(Unit& other, const Storage& to, const Storage& from, int64_t offset, int64_t bytes);
  // Runs the nest's kernel, which is printed and compiled where it is new here.
  void launch(const KernelNest& nest, const Bound& bound, const Blame& by);
  // The same with its kernel and the number of its items at hand.
  void launch(StrataKernel kernel, const KernelNest& nest, const Bound& bound, int64_t items, const Blame& by);
  int64_t launches() const { return launches_.load(std::memory_order_relaxed); }  // so far
  int64_t replayed() const { return replayed_.load(std::memory_order_relaxed); }  // of these, by graphs
  void count_replayed(int64_t n) { replayed_.fetch_add(n, std::memory_order_relaxed); }
  // Waits for all queues; raises what went wrong since the last time, with the operator's name and the user's line.
  void synchronize();
  void drain() noexcept;  // waits; what went wrong is raised later

  // This thread's; that of a number, made where it is new; the next of a program's own, which come round again.
  Queue& queue() { return queue(current_stream(device_)); }
  Queue& queue(int number);
  int next_queue();

  // An operator of the plugin's library (device/library.h).
  void run(StrataOperator op, const std::vector<StrataOperand>& results, const std::vector<StrataOperand>& arguments,
           const std::string& name);

  Kernels& kernels() { return kernels_; }
  OnceMap<std::string, StrataOperator>& library() { return library_; }  // by name; null: there is none
  const Plugin& plugin() const { return plugin_; }
  // Whether an operator may run here by printed kernels.
  bool offers(const std::string& op) const {
    return !plugin_.table->offers || plugin_.table->offers(device_.index, op.c_str());
  }

 private:
  // Memory that a queue uses which is not its own stays until that is done.
  void use(const void* handle, const Queue& queue) {
    if (several_.load(std::memory_order_relaxed)) memory_.keep(handle, queue.number());
  }

  const Plugin& plugin_;
  const Device device_;
  std::mutex lock_;  // of making queues
  std::array<std::atomic<Queue*>, kMaxStreams> queues_{};
  std::atomic<bool> several_{false};
  std::atomic<int64_t> launches_{0}, replayed_{0};
  int last_made_ = 0;
  Memory memory_;
  Pinned pinned_;
  Kernels kernels_;
  OnceMap<std::string, StrataOperator> library_;
};

// Of a device with a number, or (-1) the current one of its type. Raises for a number that there is not.
Unit& unit(Device device);
// Whether a device's copies reach that memory of the host by themselves.
bool is_pinned(const void* data);
int count(const Plugin& plugin);

}  // namespace strata::device
