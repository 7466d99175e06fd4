// Forks and work that holds locks, kept apart: a fork waits for those at work, who otherwise would leave a child copies
// of their locks and nobody to open them, and new work waits for the fork.
#pragma once
#include <condition_variable>
#include <mutex>

namespace strata::jit {

class Gate {
 public:
  // The process's. Nobody inside may enter again, or wait for the interpreter's lock: who forks may hold that.
  static Gate& process();

  void enter();
  void leave();

 private:
  void close();
  void open();

  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool closed_ = false;
};

class AtWork {
 public:
  AtWork() { Gate::process().enter(); }
  ~AtWork() { Gate::process().leave(); }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};

}  // namespace strata::jit
