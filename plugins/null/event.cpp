#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "null.h"

namespace null {

namespace {

using Clock = std::chrono::steady_clock;

// How often it was recorded, and which of those times the queue has come to.
struct Event {
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

// Tasks of queues may outlive the handle.
std::shared_ptr<Event>& of(StrataEvent event) { return *reinterpret_cast<std::shared_ptr<Event>*>(event); }

}  // namespace

StrataStatus event_create(int32_t device, int32_t, StrataEvent* event) {
  if (device < 0 || device >= devices()) return fail(STRATA_INVALID, "there is no device of that number");
  *event = reinterpret_cast<StrataEvent>(new std::shared_ptr<Event>(std::make_shared<Event>()));
  return STRATA_OK;
}

StrataStatus event_destroy(StrataEvent event) {
  delete &of(event);
  return STRATA_OK;
}

StrataStatus event_record(StrataEvent event, StrataQueue queue) {
  std::shared_ptr<Event> e = of(event);
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> hold(e->lock);
    number = ++e->asked;
  }
  add(queue, [e, number] {
    e->reach(number);
    return std::string();
  });
  return STRATA_OK;
}

StrataStatus event_wait(StrataQueue queue, StrataEvent event) {
  std::shared_ptr<Event> e = of(event);
  const uint64_t number = e->last();
  add(queue, [e, number] {
    e->wait(number);
    return std::string();
  });
  return STRATA_OK;
}

StrataStatus event_query(StrataEvent event, int32_t* done) {
  Event& e = *of(event);
  std::lock_guard<std::mutex> hold(e.lock);
  *done = e.reached >= e.asked;
  return STRATA_OK;
}

StrataStatus event_synchronize(StrataEvent event) {
  Event& e = *of(event);
  e.wait(e.last());
  return STRATA_OK;
}

StrataStatus event_elapsed(StrataEvent begin, StrataEvent end, double* ms) {
  Event &from = *of(begin), &to = *of(end);
  *ms = 0;
  if (&from == &to) return STRATA_OK;
  std::scoped_lock hold(from.lock, to.lock);
  if (from.reached < from.asked || to.reached < to.asked) return fail(STRATA_INVALID, "an event is not over");
  *ms = std::chrono::duration<double, std::milli>(to.at - from.at).count();
  return STRATA_OK;
}

}  // namespace null
