#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "null.h"

namespace null {

namespace {

// A thread that does what it is given, in order.
class Queue {
 public:
  Queue() : random_(setting("STRATA_NULL_SEED", 1)) {
    std::thread([this] { work(); }).detach();
  }

  void add(std::function<std::string()> task) {
    std::lock_guard<std::mutex> hold(lock_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  // Waits for all of it, and gives what went wrong since the last time.
  std::string wait() {
    std::unique_lock<std::mutex> hold(lock_);
    changed_.wait(hold, [&] { return tasks_.empty() && !busy_; });
    return std::exchange(failure_, {});
  }
  void stop() {
    wait();
    std::lock_guard<std::mutex> hold(lock_);
    stopped_ = true;
    changed_.notify_all();
  }
  std::mt19937_64& random() { return random_; }  // for tasks

 private:
  void work() {
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
      changed_.wait(hold, [&] { return stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) break;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      hold.unlock();
      if (const int64_t us = delay_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
      std::string failed = task();
      task = nullptr;
      hold.lock();
      busy_ = false;
      if (failure_.empty()) failure_ = std::move(failed);
      if (tasks_.empty()) changed_.notify_all();
    }
    hold.unlock();
    delete this;
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<std::string()>> tasks_;
  bool busy_ = false, stopped_ = false;
  std::string failure_;
  std::mt19937_64 random_;
};

Queue& of(StrataQueue queue) { return *reinterpret_cast<Queue*>(queue); }

std::vector<int64_t> shuffled(int64_t count, std::mt19937_64& random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

StrataStatus wait(StrataQueue queue) {
  const std::string failed = of(queue).wait();
  return failed.empty() ? STRATA_OK : fail(STRATA_FAILED, failed);
}

}  // namespace

StrataStatus queue_create(int32_t device, StrataQueue* queue) {
  if (device < 0 || device >= devices()) return fail(STRATA_INVALID, "there is no device of that number");
  *queue = reinterpret_cast<StrataQueue>(new Queue);
  return STRATA_OK;
}

StrataStatus queue_destroy(StrataQueue queue) {
  of(queue).stop();  // its thread deletes it
  return STRATA_OK;
}

StrataStatus synchronize(StrataQueue queue) { return wait(queue); }

void add(StrataQueue queue, std::function<std::string()> task) { of(queue).add(std::move(task)); }

static void take_time() {
  if (const int64_t us = delay_copy_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

StrataStatus upload(StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes) {
  if (!holds(to, offset, bytes)) return fail(STRATA_INVALID, "the place is no memory of the device");
  auto data =
      std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  of(queue).add([=] {
    take_time();
    std::memcpy(address(to) + offset, data->data(), data->size());
    return std::string();
  });
  return STRATA_OK;
}

StrataStatus download(StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes) {
  if (!holds(from, offset, bytes)) return fail(STRATA_INVALID, "the place is no memory of the device");
  of(queue).add([=] {
    std::memcpy(to, address(from) + offset, bytes);
    return std::string();
  });
  return wait(queue);
}

StrataStatus copy(StrataQueue queue, StrataMemory to, uint64_t to_offset, StrataMemory from, uint64_t from_offset,
                  uint64_t bytes) {
  if (!holds(to, to_offset, bytes) || !holds(from, from_offset, bytes))
    return fail(STRATA_INVALID, "a place is no memory of the device");
  of(queue).add([=] {
    take_time();
    std::memcpy(address(to) + to_offset, address(from) + from_offset, bytes);
    return std::string();
  });
  return STRATA_OK;
}

StrataStatus launch(StrataQueue queue, StrataKernel kernel, const StrataArgument* arguments, uint32_t count,
                    int64_t items, uint32_t group) {
  auto slots = std::make_shared<std::vector<uint64_t>>();
  char* first = nullptr;
  for (uint32_t k = 0; k < count; ++k) {
    const StrataArgument& a = arguments[k];
    char* memory = a.bytes || !a.memory ? nullptr : address(a.memory);
    if (!a.bytes && a.memory && !memory) return fail(STRATA_INVALID, "an argument is no memory of the device");
    if (!first) first = memory;
    slots->push_back(a.bytes ? a.value : reinterpret_cast<uint64_t>(memory));
  }
  Queue& q = of(queue);
  const bool failing = fails(Fault::Kernel), flips = fails(Fault::Bit);
  q.add([=, &q] {
    if (failing) return std::string("a kernel failed: a fault that was asked for");
    if (group) {
      std::string failed;
      constexpr int64_t kTogether = 2;  // also in the memory that one before them has left
      for (int64_t p : shuffled((items + kTogether - 1) / kTogether, q.random()))
        if (failed.empty())
          failed = run_groups(reinterpret_cast<GroupEntry>(kernel), slots->data(), p * kTogether,
                              std::min(items, (p + 1) * kTogether), int32_t(group), q.random());
      if (flips && first) *first ^= 1;
      return failed;
    }
    // Pieces in a shuffled order: what an item needs of another one shows.
    constexpr int64_t kPieces = 24;
    const Entry entry = reinterpret_cast<Entry>(kernel);
    const int64_t pieces = std::min(kPieces, items);
    for (int64_t p : shuffled(pieces, q.random())) entry(slots->data(), items * p / pieces, items * (p + 1) / pieces);
    if (flips && first) *first ^= 1;
    return std::string();
  });
  return STRATA_OK;
}

}  // namespace null
