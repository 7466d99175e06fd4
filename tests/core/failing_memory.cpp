// Preloaded into a process by tests/python/test_memory.py: C++ allocations fail when they are told to. Python's own,
// which go to malloc, do not.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

extern "C" {
void* __libc_memalign(size_t alignment, size_t bytes);

static std::atomic<long> until_{-1}, count_{0}, taken_{0};

// The first allocation after `n` others fails, and `count` in all. n < 0: none.
__attribute__((visibility("default"))) void fail_after(long n, long count) {
  count_ = count;
  until_ = n;
}
__attribute__((visibility("default"))) long failures_left() { return count_; }
__attribute__((visibility("default"))) long allocations() { return taken_; }

static bool fails() {
  ++taken_;
  if (until_ < 0) return false;
  if (until_ > 0) return --until_, false;
  if (count_ > 0) return --count_, true;
  return false;
}

__attribute__((visibility("default"))) int posix_memalign(void** p, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *p = __libc_memalign(alignment, bytes);
  return *p ? 0 : ENOMEM;
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
}

__attribute__((visibility("default"))) void* operator new(size_t bytes) {
  if (!fails())
    if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
