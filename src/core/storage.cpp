#include "core/storage.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace strata {

Ref<Storage> Storage::make(Allocator& allocator, size_t bytes, bool allocate) {
  Ref<Storage> s(new Storage);
  if (allocate) s->data_ = allocator.allocate(bytes);
  s->bytes_ = bytes;
  s->allocator_ = &allocator;
  s->device_ = allocator.device();
  return s;
}

Ref<Storage> Storage::borrow(void* data, size_t bytes, Device device, void (*release)(void*), void* context) {
  Ref<Storage> s;
  try {
    s = new Storage;
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

void Storage::resize(size_t bytes) {
  STRATA_CHECK(allocator_,
               "resize_: Trying to resize storage that is not resizable: it borrows memory of another "
               "library; clone the tensor first");
  void* fresh = allocator_->allocate(bytes);
  if (data_ && fresh) std::memcpy(fresh, data_, std::min(bytes, bytes_));
  if (data_) allocator_->free(data_, bytes_);
  data_ = fresh;
  bytes_ = bytes;
}

Storage::~Storage() {
  if (allocator_) {
    if (data_) allocator_->free(data_, bytes_);
  } else if (release_) {
    release_(context_);
  }
}

}  // namespace strata
