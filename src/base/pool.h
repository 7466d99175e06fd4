// Free lists for small objects of one size: thread-local, bounded, without locks. Blocks may be freed by another thread
// than the one that took them. Sanitizer builds go to the heap each time, so that misuse is seen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/error.h"

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

// Has `end` called on this thread when it ends, behind the destructors of its thread-local variables. `end` is called
// on other threads that called this, too: what it ends they may not have begun.
void at_thread_end(void (*end)());

// The blocks of one size that a thread has freed, at most Limit. A list ends with its thread: what is given later is
// not kept. Trivially destructible on purpose: objects may die after a thread's other locals.
template <size_t Size, size_t Limit, void (*Free)(void*)>
class FreeList {
 public:
  // Null where there is none.
  static void* take() {
    List& list = local();
    Link* p = list.head;
    if (!p) return nullptr;
    list.head = p->next;
    ++list.room;
    return p;
  }
  static void give(void* p) {
    List& list = local();
    if (STRATA_UNLIKELY(list.room == 0)) return full(p);  // a tail call, so that the usual way saves no registers
    Link* link = static_cast<Link*>(p);
    link->next = list.head;
    list.head = link;
    --list.room;
  }

 private:
  struct Link {
    Link* next;
  };
  struct List {
    Link* head;
    uint32_t room;
    bool begun;
  };
  static List& local() {
    static thread_local List list STRATA_HOT_TLS = {nullptr, 0, false};
    return list;
  }
  [[gnu::noinline]] static void full(void* p) {
    List& list = local();
    if (list.begun) return Free(p);
    list.begun = true;
    at_thread_end(end);
    list.room = Limit;
    give(p);
  }
  static void end() {
    List& list = local();
    while (void* p = take()) Free(p);
    list = {nullptr, 0, true};
  }
};

template <size_t Size, size_t Limit = 512>
class Pool {
 public:
  static void* take() {
#ifndef STRATA_SANITIZED
    if (void* p = List::take()) return p;
#endif
    return ::operator new(Size);
  }
  static void give(void* p) {
#ifndef STRATA_SANITIZED
    List::give(p);
#else
    ::operator delete(p);
#endif
  }

 private:
  using List = FreeList < Size, Limit, ::operator delete>;
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
