#include "null.h"

namespace null {

using Clock = std::chrono::steady_clock;

// How often it was recorded, and which of those times the queue has come to.
struct Event::State {
  std::mutex lock;
  std::condition_variable changed;
  uint64_t asked = 0, reached = 0;
  Clock::time_point at;

  void reach(uint64_t number) {
    std::lock_guard<std::mutex> hold(lock);
    if (number > reached) reached = number, at = Clock::now();
    changed.notify_all();
  }
  void wait(uint64_t number) {
    std::unique_lock<std::mutex> hold(lock);
    changed.wait(hold, [&] { return reached >= number; });
  }
  uint64_t last() {
    std::lock_guard<std::mutex> hold(lock);
    return asked;
  }
};

Event::Event(int32_t device, bool) : state_(std::make_shared<State>()) { check_device(device); }

void Event::record(Queue& queue) {
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> hold(state_->lock);
    number = ++state_->asked;
  }
  queue.add([state = state_, number] {
    state->reach(number);
    return std::string();
  });
}

void Event::wait(Queue& queue) {
  queue.add([state = state_, number = state_->last()] {
    state->wait(number);
    return std::string();
  });
}

bool Event::done() {
  if (fails(Fault::Event)) sdk::fail(STRATA_FAILED, "a fault that was asked for");
  std::lock_guard<std::mutex> hold(state_->lock);
  return state_->reached >= state_->asked;
}

void Event::synchronize() { state_->wait(state_->last()); }

double Event::since(Event& begin) {
  State &from = *begin.state_, &to = *state_;
  if (&from == &to) return 0;
  std::scoped_lock hold(from.lock, to.lock);
  if (from.reached < from.asked || to.reached < to.asked) sdk::fail(STRATA_INVALID, "an event is not over");
  return std::chrono::duration<double, std::milli>(to.at - from.at).count();
}

}  // namespace null
