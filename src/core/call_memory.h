// Memory of one call or task, from where tensors have theirs: pages of large pieces stay for the next one.
#pragma once
#include "core/allocator.h"

namespace strata {

class CallMemory {
 public:
  explicit CallMemory(int64_t bytes)
      : bytes_(size_t(bytes)), data_(static_cast<char*>(cpu_allocator().allocate(bytes_))) {}
  ~CallMemory() { cpu_allocator().free(data_, bytes_); }
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

  // The next piece of so many bytes, 64 byte aligned; all of them, each rounded up, are at most what was asked for.
  char* take(int64_t bytes) {
    char* p = data_ + used_;
    used_ += rounded(bytes);
    return p;
  }
  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

 private:
  size_t bytes_;
  int64_t used_ = 0;
  char* data_;
};

}  // namespace strata
