// Intrusive reference counting. A counted type offers `incref()` and `decref()`; decref destroys at zero.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace strata {

// How many references an object has: the first is its maker's, who hands it to Ref::adopt, and who holds the last alone
// gives it up without a locked instruction. (Two of them are a fifth of the time of a view.) Not for what others may
// look up while it dies.
class RefCount {
 public:
  void up() { count_.fetch_add(1, std::memory_order_relaxed); }
  // Whether that was the last one; the count may stay 1 then.
  bool down() {
    return count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  int32_t get() const { return count_.load(std::memory_order_acquire); }
  void set(int32_t n) { count_.store(n, std::memory_order_relaxed); }

 private:
  std::atomic<int32_t> count_{1};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(T* p) : p_(p) {
    if (p_) p_->incref();
  }
  // Takes over a reference that the caller owns.
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  template <class U>
  Ref(const Ref<U>& o) : Ref(static_cast<T*>(o.get())) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->decref();
  }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }
  T* release() {
    T* p = p_;
    p_ = nullptr;
    return p;
  }
  void reset() { *this = Ref(); }

 private:
  T* p_ = nullptr;
};

}  // namespace strata
