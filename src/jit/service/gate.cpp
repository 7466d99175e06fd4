#include "jit/service/gate.h"

#include <pthread.h>

#include <new>

namespace strata::jit {

Gate& Gate::process() {
  static Gate* one = [] {
    auto* made = new Gate;
    // The locks of a gate are those of the parent's threads: a child makes it anew.
    pthread_atfork([] { process().close(); }, [] { process().open(); }, [] { new (&process()) Gate; });
    return made;
  }();
  return *one;
}

void Gate::enter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !closed_; });
  ++inside_;
}
void Gate::leave() {
  std::lock_guard lock(mutex_);
  if (--inside_ == 0) changed_.notify_all();
}
void Gate::close() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !closed_; });  // another thread forks
  closed_ = true;
  changed_.wait(lock, [&] { return inside_ == 0; });
}
void Gate::open() {
  std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

}  // namespace strata::jit
