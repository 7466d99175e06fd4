// Free lists for small objects of one size: thread-local, bounded, without locks. Blocks may be freed by another thread
// than the one that took them. Sanitizer builds go to the heap each time, so that misuse is seen.
#pragma once
#include <cstddef>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRATA_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STRATA_SANITIZED 1
#endif
#endif

// For the few thread-local variables that every call reads. They lie at a fixed distance from the thread's pointer, in
// room that the loader keeps for all late libraries together, so the whole library must hold little thread-local data.
// (As a compiler flag this would ask the same of libstdc++'s variables, which fails where another library has loaded it
// first.)
#define STRATA_HOT_TLS __attribute__((tls_model("initial-exec")))

namespace strata {

template <size_t Size, size_t Limit = 512>
class Pool {
 public:
  static void* take() {
#ifndef STRATA_SANITIZED
    List& list = local();
    if (Link* p = list.head) {
      list.head = p->next;
      --list.count;
      return p;
    }
#endif
    return ::operator new(Size);
  }
  static void give(void* p) {
#ifndef STRATA_SANITIZED
    List& list = local();
    if (list.count < Limit) {
      Link* link = static_cast<Link*>(p);
      link->next = list.head;
      list.head = link;
      ++list.count;
      return;
    }
#endif
    ::operator delete(p);
  }

 private:
  struct Link {
    Link* next;
  };
  // Trivially destructible on purpose: objects may die after a thread's other locals. What an ended thread held is lost
  // to the process, at most Limit blocks.
  struct List {
    Link* head;
    size_t count;
  };
  static List& local() {
    static thread_local List list STRATA_HOT_TLS = {nullptr, 0};
    return list;
  }
};

// The same for objects of several sizes, in steps of 64 bytes; beyond 512 the heap. `give` must be told the same size.
class SizedPool {
 public:
  static void* take(size_t size) {
    switch ((size + 63) / 64) {
      case 0:
      case 1:
      case 2:
        return Pool<128>::take();
      case 3:
        return Pool<192>::take();
      case 4:
        return Pool<256>::take();
      case 5:
        return Pool<320>::take();
      case 6:
        return Pool<384>::take();
      case 7:
      case 8:
        return Pool<512>::take();
      default:
        return ::operator new(size);
    }
  }
  static void give(void* p, size_t size) {
    switch ((size + 63) / 64) {
      case 0:
      case 1:
      case 2:
        return Pool<128>::give(p);
      case 3:
        return Pool<192>::give(p);
      case 4:
        return Pool<256>::give(p);
      case 5:
        return Pool<320>::give(p);
      case 6:
        return Pool<384>::give(p);
      case 7:
      case 8:
        return Pool<512>::give(p);
      default:
        return ::operator delete(p);
    }
  }
};

}  // namespace strata
