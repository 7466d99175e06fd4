// The way out of LLVM where it cannot go on: rules of its own may undo each other's work for ever, and it counts no
// turns; and its fatal errors must not return.
#pragma once
#include <csetjmp>
#include <string>

namespace strata_clang {

// Of one call on one thread. While it runs, the thread may replace a million values, or STRATA_CLANG_LIMIT, most in a
// second; a long text needs some thousands.
class Escape {
 public:
  // Calls work(on), whose exceptions pass. False where it was left: at once, and nothing that it had made is taken
  // down, since it is in no state to be; what it worked on must not be used again.
  bool run(void (*work)(void*), void* on);
  // What is running on this thread is left; returns where nothing is.
  static void leave(const char* why, bool endless);

  const std::string& why() const { return why_; }
  bool endless() const { return endless_; }  // the limit was reached

 private:
  std::jmp_buf place_;
  std::string why_;
  bool endless_ = false;
};

}  // namespace strata_clang
