#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "null.h"

namespace null {

struct Queue::Work {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<std::string()>> tasks;
  bool busy = false, stopped = false;
  std::string failure;
  std::mt19937_64 random{sdk::setting("STRATA_NULL_SEED", 1)};  // for tasks

  void run() {
    std::unique_lock<std::mutex> hold(lock);
    for (;;) {
      changed.wait(hold, [&] { return stopped || !tasks.empty(); });
      if (tasks.empty()) return;
      auto task = std::move(tasks.front());
      tasks.pop_front();
      busy = true;
      hold.unlock();
      if (const int64_t us = delay_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
      std::string failed = task();
      task = nullptr;
      hold.lock();
      busy = false;
      if (failure.empty()) failure = std::move(failed);
      if (tasks.empty()) changed.notify_all();
    }
  }
  // Waits for all of it.
  std::unique_lock<std::mutex> over() {
    std::unique_lock<std::mutex> hold(lock);
    changed.wait(hold, [&] { return tasks.empty() && !busy; });
    return hold;
  }
};

namespace {

void take_time() {
  if (const int64_t us = delay_copy_us()) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

void check_host(const void* memory, uint64_t bytes) {
  if (!host_holds(memory, bytes)) sdk::fail(STRATA_INVALID, "the place is no memory of the host that was allocated");
}

void check_place(Memory memory, uint64_t offset, uint64_t bytes) {
  if (!holds(memory, offset, bytes)) sdk::fail(STRATA_INVALID, "the place is no memory of the device");
}

}  // namespace

Queue::Queue(int32_t device) {
  check_device(device);
  work_ = std::make_shared<Work>();
  std::thread([work = work_] { work->run(); }).detach();
}

Queue::~Queue() {
  const auto hold = work_->over();
  work_->stopped = true;
  work_->changed.notify_all();
}

void Queue::synchronize() {
  std::string failed;
  {
    const auto hold = work_->over();
    failed = std::exchange(work_->failure, {});
  }
  if (!failed.empty()) sdk::fail(STRATA_FAILED, failed);
}

void Queue::add(std::function<std::string()> task) {
  std::lock_guard<std::mutex> hold(work_->lock);
  work_->tasks.push_back(std::move(task));
  work_->changed.notify_all();
}

void Queue::add_seeded(std::function<std::string(std::mt19937_64&)> task) {
  std::mt19937_64& random = work_->random;  // it lives as long as its tasks
  add([task = std::move(task), &random] { return task(random); });
}

void Queue::upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  check_place(to, offset, bytes);
  auto data =
      std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  add([=] {
    take_time();
    std::memcpy(address(to) + offset, data->data(), data->size());
    return std::string();
  });
}

void Queue::download(void* to, Memory from, uint64_t offset, uint64_t bytes) {
  check_place(from, offset, bytes);
  if (fails(Fault::Copy)) sdk::fail(STRATA_FAILED, "a copy failed: a fault that was asked for");
  add([=] {
    std::memcpy(to, address(from) + offset, bytes);
    return std::string();
  });
  synchronize();
}

void Queue::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  check_place(to, to_offset, bytes);
  check_place(from, from_offset, bytes);
  add([=] {
    take_time();
    std::memcpy(address(to) + to_offset, address(from) + from_offset, bytes);
    return std::string();
  });
}

void Queue::upload_later(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  check_place(to, offset, bytes);
  check_host(from, bytes);
  add([=] {
    take_time();
    std::memcpy(address(to) + offset, from, bytes);
    return std::string();
  });
}

void Queue::download_later(void* to, Memory from, uint64_t offset, uint64_t bytes) {
  check_place(from, offset, bytes);
  check_host(to, bytes);
  add([=] {
    take_time();
    std::memcpy(to, address(from) + offset, bytes);
    return std::string();
  });
}

void Queue::peer_copy(Memory to, uint64_t to_offset, int32_t device, Memory from, uint64_t from_offset,
                      uint64_t bytes) {
  check_device(device);
  copy(to, to_offset, from, from_offset, bytes);
}

void Queue::launch(Kernel kernel, const StrataArgument* arguments, uint32_t count, int64_t items, uint32_t group) {
  Launch launch(kernel, arguments, count, items, group);
  launch.ask_faults();
  add_seeded([launch = std::move(launch)](std::mt19937_64& random) { return launch.run(random); });
}

}  // namespace null
