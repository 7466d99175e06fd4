// What a compiled function calls for the sizes of a call, where its guards leave sizes open.
#pragma once
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace strata::py {

// Numbers of a call. Few of them need no memory of their own.
class SizeKey {
 public:
  void push_back(int64_t n) {
    if (count_ < kFew)
      few_[count_] = n;
    else
      more_.push_back(n);
    ++count_;
    hash_ = (hash_ ^ uint64_t(n)) * 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 29;
  }
  size_t size() const { return count_; }
  int64_t operator[](size_t i) const { return i < kFew ? few_[i] : more_[i - kFew]; }
  uint64_t hash() const { return hash_; }
  bool operator==(const SizeKey& o) const {
    if (hash_ != o.hash_ || count_ != o.count_) return false;
    return std::equal(few_, few_ + std::min(count_, kFew), o.few_) && more_ == o.more_;
  }

 private:
  static constexpr size_t kFew = 16;
  size_t count_ = 0;
  uint64_t hash_ = 0;
  int64_t few_[kFew];
  std::vector<int64_t> more_;
};

// By key, a callable, or None where the entry is not for such sizes. Those that were not asked for longest make room.
// Under Python's lock, as all that holds references.
class Instances {
 public:
  Instances() = default;
  Instances(const Instances&) = delete;
  Instances& operator=(const Instances&) = delete;
  ~Instances() { clear(); }

  // Borrowed; null where there is none.
  PyObject* find(const SizeKey& key) {
    for (Instance& one : all_)
      if (one.key == key) {
        one.used = ++clock_;
        return one.run;
      }
    return nullptr;
  }

  // bound: how many callables are kept, and how many of None.
  void put(SizeKey key, PyObject* run, size_t bound) {
    PyObject* before = nullptr;
    size_t same = 0, oldest = 0;
    bool known = false;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].key == key) {
        before = all_[i].run;
        all_[i].run = Py_NewRef(run);
        known = true;
        break;
      }
      if ((all_[i].run == Py_None) != (run == Py_None)) continue;
      if (same++ == 0 || all_[i].used < all_[oldest].used) oldest = i;
    }
    if (!known && same >= bound && same) {
      before = all_[oldest].run;
      all_.erase(all_.begin() + std::ptrdiff_t(oldest));
    }
    if (!known) all_.push_back({std::move(key), Py_NewRef(run), ++clock_});
    Py_XDECREF(before);  // may run Python, so last
  }

  void clear() {
    std::vector<Instance> gone;
    gone.swap(all_);
    for (Instance& one : gone) Py_DECREF(one.run);
  }

  int traverse(visitproc visit, void* arg) {
    for (Instance& one : all_) Py_VISIT(one.run);
    return 0;
  }

 private:
  struct Instance {
    SizeKey key;
    PyObject* run;
    uint64_t used;
  };
  std::vector<Instance> all_;
  uint64_t clock_ = 0;
};

}  // namespace strata::py
