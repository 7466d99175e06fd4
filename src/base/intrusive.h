// Intrusive reference counting. A counted type offers `incref()` and `decref()`; decref destroys at zero.
#pragma once
#include <cstddef>
#include <utility>

namespace strata {

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
