// ArrayRef: a borrowed, read-only view of contiguous values. SmallVec: a vector of trivially copyable values with room
// for N of them inside. DimVec is the type for sizes and strides.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <ostream>
#include <type_traits>
#include <vector>

namespace strata {

template <class T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}
  // The list must outlive the view: pass it as a function argument only.
  ArrayRef(std::initializer_list<T> v) : data_(v.begin()), size_(v.size()) {}
  ArrayRef(const T& one) : data_(&one), size_(1) {}

  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  ArrayRef slice(size_t begin, size_t count) const { return {data_ + begin, count}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> a) {
  out << '[';
  for (size_t i = 0; i < a.size(); ++i) out << (i ? ", " : "") << a[i];
  return out << ']';
}

template <class T, size_t N>
class SmallVec {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVec() = default;
  explicit SmallVec(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = 0; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  SmallVec(std::initializer_list<T> v) { assign(v.begin(), v.size()); }
  SmallVec(ArrayRef<T> v) { assign(v.data(), v.size()); }
  SmallVec(const std::vector<T>& v) { assign(v.data(), v.size()); }
  SmallVec(const SmallVec& other) { assign(other.data_, other.size_); }
  SmallVec(SmallVec&& other) noexcept { take(other); }
  SmallVec& operator=(const SmallVec& other) {
    if (this != &other) assign(other.data_, other.size_);
    return *this;
  }
  SmallVec& operator=(SmallVec&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~SmallVec() { release(); }

  void assign(const T* v, size_t n) {
    reserve(n);
    if (n) std::memmove(data_, v, n * sizeof(T));
    size_ = n;
  }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  void push_back(T value) {
    reserve(size_ + 1);
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void insert(size_t at, T value) {
    push_back(value);
    for (size_t i = size_ - 1; i > at; --i) data_[i] = data_[i - 1];
    data_[at] = value;
  }
  void erase(size_t at) {
    for (size_t i = at; i + 1 < size_; ++i) data_[i] = data_[i + 1];
    --size_;
  }
  void clear() { size_ = 0; }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  operator ArrayRef<T>() const { return {data_, size_}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool operator==(const SmallVec& o) const { return ArrayRef<T>(*this) == ArrayRef<T>(o); }

 private:
  void grow(size_t n) {
    if (n > SIZE_MAX / 4 / sizeof(T)) throw std::bad_alloc();
    size_t wanted = n < 2 * capacity_ ? 2 * capacity_ : n;
    T* fresh = static_cast<T*>(::operator new(wanted * sizeof(T)));
    if (size_) std::memcpy(fresh, data_, size_ * sizeof(T));
    release();
    data_ = fresh;
    capacity_ = wanted;
  }
  void release() {
    if (data_ != inline_) ::operator delete(data_);
    data_ = inline_;
    capacity_ = N;
  }
  void take(SmallVec& other) {
    if (other.data_ == other.inline_) {
      assign(other.data_, other.size_);
    } else {
      data_ = other.data_;
      size_ = other.size_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_;
      other.capacity_ = N;
    }
    other.size_ = 0;
  }

  T inline_[N];
  T* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = N;
};

using DimVec = SmallVec<int64_t, 6>;

// A list of flags, whose length callers choose: to ask for one that it lacks raises.
class BoolVec : public SmallVec<bool, 4> {
 public:
  using SmallVec::SmallVec;
  bool operator[](size_t k) const {
    if (k >= size()) too_few(k + 1, size());
    return begin()[k];
  }

 private:
  [[noreturn]] static void too_few(size_t wanted, size_t given);
};
using IntArrayRef = ArrayRef<int64_t>;

template <class T, size_t N>
std::ostream& operator<<(std::ostream& out, const SmallVec<T, N>& v) {
  return out << ArrayRef<T>(v);
}

}  // namespace strata
