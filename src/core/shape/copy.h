// Rules of copies.
#pragma once
#include <optional>

#include "core/shape/prepared.h"

namespace strata::shape {

template <class S>
Prepared<S> copy(const Geometry<S>& self) {
  return {self.sizes, self.dtype};
}
template <class S>
Prepared<S> copy(const Geometry<S>& self, const std::optional<DType>& dtype) {
  return {self.sizes, dtype ? *dtype : self.dtype};
}
// Into self, from src, which is broadcast to it.
template <class S>
Prepared<S> copy_from(const Geometry<S>& self, const Geometry<S>& src);

}  // namespace strata::shape
