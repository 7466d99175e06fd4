// Values that are dear to make: each key's is made once, outside of the lock; who asks for it meanwhile waits, others
// don't. What fails is forgotten, and made again by the next one who asks.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

namespace strata::device {

template <class Key, class Value>
class OnceMap {
 public:
  template <class Make>
  Value get(const Key& key, Make make) {
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
      const auto [at, fresh] = all_.try_emplace(key);
      if (at->second) return *at->second;
      if (fresh) break;
      done_.wait(hold);
    }
    hold.unlock();
    try {
      Value made = make();
      hold.lock();
      all_[key] = made;
      done_.notify_all();
      return made;
    } catch (...) {
      if (!hold.owns_lock()) hold.lock();
      all_.erase(key);
      done_.notify_all();
      throw;
    }
  }

  // One that is made; nothing (Value()) where it is new or at work.
  Value find(const Key& key) {
    std::lock_guard<std::mutex> hold(lock_);
    const auto at = all_.find(key);
    return at != all_.end() && at->second ? *at->second : Value();
  }

 private:
  std::mutex lock_;
  std::condition_variable done_;
  std::map<Key, std::optional<Value>> all_;  // without a value: at work
};

}  // namespace strata::device
