// Scalars of space kernels: 16-byte slots in the order of the table's `scalars:`.
#pragma once
#include <cstring>

#include "eager/cast.h"
#include "run/space.h"

namespace strata::eager {

class Slots {
 public:
  Slots& add(int64_t v) { return put(&v, sizeof v); }
  Slots& add(IntArrayRef list) {
    for (int64_t v : list) add(v);
    return *this;
  }
  // A value as the bits of an element of dtype t.
  Slots& add(const Scalar& v, DType t) {
    alignas(16) char bytes[16] = {};
    store_scalar(v, t, bytes);
    return put(bytes, sizeof bytes);
  }
  const void* data() const { return bytes_; }

 private:
  Slots& put(const void* v, size_t size) {
    STRATA_INTERNAL(used_ + 16 <= sizeof bytes_, "too many scalars");
    std::memcpy(bytes_ + used_, v, size);
    used_ += 16;
    return *this;
  }
  alignas(16) char bytes_[16 * 16] = {};
  size_t used_ = 0;
};

}  // namespace strata::eager
