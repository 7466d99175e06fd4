#include "core/storage.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace strata {

void Allocator::move(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

Ref<Storage> Storage::make(Allocator& allocator, size_t bytes, bool allocate) {
  auto s = Ref<Storage>::adopt(new Storage);
  if (allocate) s->data_ = allocator.allocate(bytes);
  s->bytes_ = s->capacity_ = bytes;
  s->shape_only_ = !allocate;
  s->allocator_ = &allocator;
  s->device_ = allocator.device();
  return s;
}

Ref<Storage> Storage::away(Allocator& allocator, size_t bytes) {
  auto s = Ref<Storage>::adopt(new Storage);
  s->context_ = allocator.allocate(bytes);
  s->bytes_ = s->capacity_ = bytes;
  s->allocator_ = &allocator;
  s->device_ = allocator.device();
  return s;
}

Ref<Storage> Storage::borrow(void* data, size_t bytes, Device device, void (*release)(void*), void* context) {
  Ref<Storage> s;
  try {
    s = Ref<Storage>::adopt(new Storage);
  } catch (...) {
    if (release) release(context);
    throw;
  }
  s->data_ = data;
  s->bytes_ = bytes;
  s->device_ = device;
  s->release_ = release;
  s->context_ = context;
  return s;
}

bool Storage::can_resize(size_t bytes) const {
  return allocator_ && (!pinned_.load(std::memory_order_relaxed) || (bytes != 0 && bytes <= capacity_));
}

void Storage::resize(size_t bytes) {
  STRATA_CHECK(can_resize(bytes), "resize_: Trying to resize storage that is not resizable: ",
               allocator_ ? "another library looks at its memory, by numpy(), DLPack or a buffer"
                          : "it borrows memory of another library",
               "; clone the tensor first");
  const bool away = device_.type > 1;
  void*& own = away ? context_ : data_;
  if (shape_only_ || (bytes != 0 && own && bytes <= capacity_)) {
    bytes_ = bytes;
    return;
  }
  void* fresh = bytes ? allocator_->allocate(bytes) : nullptr;
  if (own && fresh && bytes_) allocator_->move(fresh, own, std::min(bytes, bytes_));
  if (own) allocator_->free(own, capacity_);
  own = fresh;
  bytes_ = capacity_ = bytes;
}

bool Storage::exchange(Storage& other) {
  STRATA_INTERNAL(bytes_ == other.bytes_ && device_ == other.device_, "exchange of ", bytes_, " and ", other.bytes_);
  if (pinned_.load(std::memory_order_relaxed) || other.pinned_.load(std::memory_order_relaxed)) return false;
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(allocator_, other.allocator_);
  std::swap(release_, other.release_);
  std::swap(context_, other.context_);
  return true;
}

Storage::~Storage() {
  if (allocator_) {
    if (STRATA_LIKELY(data_ != nullptr))
      allocator_->free(data_, capacity_);
    else if (context_)
      allocator_->free(context_, capacity_);
  } else if (release_) {
    release_(context_);
  }
}

}  // namespace strata
