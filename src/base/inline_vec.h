// InlineVec: a growing list with room for N values inside, for types that are not trivially copyable.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <new>
#include <utility>

namespace strata {

template <class T, size_t N>
class InlineVec {
 public:
  InlineVec() = default;
  explicit InlineVec(size_t n) { resize(n); }
  InlineVec(std::initializer_list<T> v) {
    for (const T& x : v) push_back(x);
  }
  InlineVec(const InlineVec& o) {
    for (const T& x : o) push_back(x);
  }
  InlineVec(InlineVec&& o) noexcept { take(o); }
  InlineVec& operator=(InlineVec o) noexcept {
    destroy();
    data_ = room();
    capacity_ = N;
    take(o);
    return *this;
  }
  ~InlineVec() {
    if (size_ > 0 || data_ != room()) destroy();
  }

  void push_back(T v) {
    if (size_ == capacity_) grow(capacity_ * 2);
    new (data_ + size_++) T(std::move(v));
  }
  template <class... Args>
  void emplace_back(Args&&... args) {
    if (size_ == capacity_) grow(capacity_ * 2);
    new (data_ + size_++) T{std::forward<Args>(args)...};
  }
  void resize(size_t n) {
    if (n > capacity_) grow(n);
    while (size_ < n) new (data_ + size_++) T();
    while (size_ > n) data_[--size_].~T();
  }
  void clear() { resize(0); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }

 private:
  T* room() { return reinterpret_cast<T*>(inline_); }
  void grow(size_t n) {
    T* fresh = static_cast<T*>(::operator new(n * sizeof(T)));
    for (size_t i = 0; i < size_; ++i) {
      new (fresh + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (data_ != room()) ::operator delete(data_);
    data_ = fresh;
    capacity_ = n;
  }
  void destroy() {
    while (size_ > 0) data_[--size_].~T();
    if (data_ != room()) ::operator delete(data_);
  }
  void take(InlineVec& o) {
    if (o.data_ == o.room()) {
      for (T& x : o) push_back(std::move(x));
      o.resize(0);
    } else {
      data_ = o.data_;
      size_ = o.size_;
      capacity_ = o.capacity_;
      o.data_ = o.room();
      o.size_ = 0;
      o.capacity_ = N;
    }
  }

  alignas(T) char inline_[N * sizeof(T)];
  T* data_ = room();
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace strata
