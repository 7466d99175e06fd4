// Storage: one block of memory, shared by the tensors that are views of it, with the count of writes that autograd
// reads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/intrusive.h"
#include "base/pool.h"
#include "base/span.h"
#include "core/allocator.h"

namespace strata {

// How often tensors were written, and by what last.
class Writes {
 public:
  explicit Writes(uint32_t count = 0) : count_(count) {}
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  // `op` is a string that lives for ever.
  void note(const char* op) {
    count_.fetch_add(1, std::memory_order_relaxed);
    const SourceMark mark = take_source_mark();
    op_.store(op, std::memory_order_relaxed);
    code_.store(mark.code, std::memory_order_relaxed);
    position_.store(mark.position, std::memory_order_relaxed);
  }
  // After writes that were only told, not done.
  void restore(uint32_t count) { count_.store(count, std::memory_order_relaxed); }
  // Of threads that write at once these may tell different ones.
  const char* last_op() const {
    const char* op = op_.load(std::memory_order_relaxed);
    return op ? op : "an unknown operator";
  }
  SourceMark last_mark() const {
    return {code_.load(std::memory_order_relaxed), position_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<uint32_t> count_;
  std::atomic<const char*> op_{nullptr};
  std::atomic<const void*> code_{nullptr};
  std::atomic<int32_t> position_{0};
};

// Of a tensor whose writes do not count for the others over its memory, and of its views.
class OwnWrites : public Writes {
 public:
  using Writes::Writes;
  void incref() { refs_.up(); }
  void decref() {
    if (refs_.down()) delete this;
  }

 private:
  RefCount refs_;
};

class Storage {
 public:
  // Owns `bytes` fresh bytes of `allocator`. With allocate = false it has no memory (shape-only execution).
  static Ref<Storage> make(Allocator& allocator, size_t bytes, bool allocate = true);
  // Owns memory of `allocator` that the host can't reach: data() is null, handle() what the allocator gave.
  static Ref<Storage> away(Allocator& allocator, size_t bytes);
  // Borrows memory; `release(context)` is called when the last tensor is gone, and when this throws.
  static Ref<Storage> borrow(void* data, size_t bytes, Device device, void (*release)(void*), void* context);

  void* data() const { return data_; }
  void* handle() const { return release_ ? nullptr : context_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  bool borrowed() const { return allocator_ == nullptr; }
  Writes& writes() { return writes_; }
  // Marks memory that no operator may write (see Note [Conjugates are copies]).
  void make_read_only() { read_only_ = true; }
  bool read_only() const { return read_only_; }
  // Grows or shrinks the owned memory, keeping the content that fits. Memory shrunk to more than 0 bytes stays as it
  // was, since tensors may look at all of it; shrunk to 0 it is freed, and a tensor that has elements there raises.
  void resize(size_t bytes);
  bool can_resize(size_t bytes) const;
  // Exchanges the memory of two storages, of as many bytes on one device: tensors keep their storage. False, and
  // nothing is done, where others look at either's.
  bool exchange(Storage& other);
  // Others look at the memory from now on: it is neither moved nor freed before the storage is.
  void pin() { pinned_.store(true, std::memory_order_relaxed); }

  void incref() { refs_.up(); }
  void decref() {
    if (refs_.down()) delete this;
  }
  int use_count() const { return refs_.get(); }
  static void* operator new(size_t) { return Pool<sizeof(Storage)>::take(); }
  static void operator delete(void* p) { Pool<sizeof(Storage)>::give(p); }

 private:
  Storage() = default;
  ~Storage();

  RefCount refs_;
  Device device_;
  bool shape_only_ = false;
  std::atomic<bool> pinned_{false};
  bool read_only_ = false;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  size_t capacity_ = 0;  // of data_, when it is our own
  Allocator* allocator_ = nullptr;
  void (*release_)(void*) = nullptr;
  void* context_ = nullptr;  // release_'s; without it a handle
  Writes writes_;
};

}  // namespace strata
