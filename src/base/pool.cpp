#include "base/pool.h"

#include <pthread.h>

#include <atomic>

namespace strata {

namespace {
struct End {
  void (*end)();
  End* next;
};
std::atomic<End*> ends{nullptr};

bool known(void (*end)()) {
  for (const End* e = ends.load(std::memory_order_acquire); e; e = e->next)
    if (e->end == end) return true;
  return false;
}
}  // namespace

// By a key, whose destructor takes no thread-local room and runs after those that free tensors.
void at_thread_end(void (*end)()) {
  static pthread_key_t key;
  static const bool made = pthread_key_create(&key, [](void*) {
                             for (const End* e = ends.load(std::memory_order_acquire); e; e = e->next) e->end();
                           }) == 0;
  if (!made) return;  // all keys are taken: what an ended thread held is lost
  // Two threads may note the same: to end twice does no harm.
  if (!known(end)) {
    End* noted = new (std::nothrow) End{end, ends.load(std::memory_order_relaxed)};
    if (!noted) return;
    while (!ends.compare_exchange_weak(noted->next, noted, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  pthread_setspecific(key, &key);
}

}  // namespace strata
