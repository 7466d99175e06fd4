// A queue of one device, and events: points in the work of queues. From any thread.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/tensor.h"
#include "device/nests.h"
#include "device/plugin.h"

namespace strata::device {

// What a launch takes: by operand of the nest, outputs first; by range; by dim of each operand; 16 bytes a scalar.
struct Bound {
  ArrayRef<const Storage*> operands;
  ArrayRef<int64_t> offset, extent, stride;  // offsets in bytes, strides in elements
  const void* scalars = nullptr;
};

// Who launched: the operator, and the kind of its error where an index is outside.
struct Blame {
  Blame(const char* op, ErrorKind outside = ErrorKind::Index) : op(op), outside(outside) {}
  const char* op;
  ErrorKind outside;
};

// Launches with all that they take.
struct Launches {
  struct One {
    StrataKernel kernel;
    uint32_t group;
    int64_t items;
    size_t first, past;  // arguments
    Blame by;
    SourceMark mark;
    int64_t word = -1, words = -1;  // the arguments of one that may refuse something: its word's number, their memory
  };
  std::vector<One> all;
  std::vector<StrataArgument> arguments;  // words are their queue's to say

  void add(StrataKernel kernel, const KernelNest& nest, const Bound& bound, int64_t items, const Blame& by);
};

class Batch;

// Every launch and copy waits until it is done, so that what goes wrong raises at its own line. Process-wide; gives
// what was set.
bool set_blocking(bool on);
bool blocking();

class Queue {
 public:
  Queue(const Plugin& plugin, Device device, int number);

  void upload(StrataMemory to, int64_t offset, const void* from, int64_t bytes);
  void download(void* to, StrataMemory from, int64_t offset, int64_t bytes);
  void copy(StrataMemory to, StrataMemory from, int64_t bytes);
  // Of pinned memory; they don't wait.
  void upload_later(StrataMemory to, int64_t offset, const void* from, int64_t bytes);
  void download_later(void* to, StrataMemory from, int64_t offset, int64_t bytes);
  // From another device, whose work is over; waits.
  void copy_from(StrataMemory to, Device device, StrataMemory from, int64_t offset, int64_t bytes);
  void launch(StrataKernel kernel, const KernelNest& nest, const Bound& bound, int64_t items, const Blame& by);
  // In order. `together` gives them all at once, or gives nothing and says false: then one by one.
  void give(Launches& launches, const std::function<bool()>& together = {});
  void run(StrataOperator op, const std::vector<StrataOperand>& results, const std::vector<StrataOperand>& arguments,
           const std::string& name);
  // Waits; raises what went wrong since the last time, with the operator's name and the user's line.
  void synchronize();
  // Waits; what went wrong is raised by the next synchronize().
  void drain() noexcept;

  // This thread may open batches here (device/batch.h): no other one has. The last to be closed ends it.
  bool claim();
  Batch* swap_batch(Batch* batch);
  // Gives what a batch of this thread has kept, whether or not that is anything.
  bool settle();

  int number() const { return number_; }
  StrataQueue handle() const { return queue_; }

 private:
  struct Asked {
    std::string op;
    SourceMark mark;
    ErrorKind outside = ErrorKind::Index;
  };
  struct Refusal {
    int32_t said = 0;
    Asked by;
  };
  // What the first kernel said that refused something since the last time. Raised without the lock: to name the user's
  // line may wait for a thread that waits for the lock.
  Refusal refusal();
  static void raise(const Refusal& r);
  Batch* own_batch() const {
    return batch_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id() ? batch_ : nullptr;
  }
  void told(StrataStatus status, const std::string& what);
  void given();

  const Plugin& plugin_;
  const int number_;
  StrataQueue queue_ = nullptr;
  std::mutex lock_;  // of what follows, and of the order in which words are given and launched
  // Launches that may refuse something have a word each, until somebody waits for them.
  static constexpr int kWords = 1024;
  StrataMemory words_ = nullptr;
  std::vector<Asked> asked_;
  std::mutex failure_lock_;
  std::string failure_;
  std::atomic<std::thread::id> batch_thread_{};
  Batch* batch_ = nullptr;  // of that thread alone
};

// Without events of the plugin the host waits for the queue where one is recorded.
class Event {
 public:
  Event(const Plugin& plugin, Device device, bool timing);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Queue& queue);               // what the queue has been given so far, batches apart; again: anew
  void wait(Queue& queue) const;           // what the queue is given from now on runs after it
  bool query() const;                      // whether it is over; true before it is recorded
  void synchronize() const;                // waits until it is
  double elapsed(const Event& end) const;  // milliseconds from here to `end`; both are over, and have timing
  Device device() const { return device_; }

 private:
  const Plugin& plugin_;
  const Device device_;
  const bool timing_;
  StrataEvent event_ = nullptr;
  bool recorded_ = false;
  double host_ms_ = 0;
};

// Whether all are; not where one fails when it is asked, as nobody knows then.
bool all_over(const std::vector<std::unique_ptr<Event>>& events) noexcept;

}  // namespace strata::device
