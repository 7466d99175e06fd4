// Sizes of results of indexing operators, over a size type S (int64_t here; symbolic sizes elsewhere).
#pragma once
#include <cstddef>

#include "base/error.h"

namespace strata::shape {

// Places of the indexed dims of an advanced indexing: whether they are neighbours, and the first of them.
struct IndexedDims {
  size_t first = 0;
  bool adjacent = true;
};

// `indexed[d]` tells whether dim d has an index. Neighbouring indexed dims give their broadcast shape in their place,
// others in front.
template <class Flags>
IndexedDims indexed_dims(const Flags& indexed, size_t ndim) {
  IndexedDims r;
  size_t last = 0, count = 0;
  for (size_t d = 0; d < ndim; ++d) {
    if (!indexed[d]) continue;
    if (count++ == 0) r.first = d;
    last = d;
  }
  r.adjacent = count == 0 || last - r.first + 1 == count;
  if (!r.adjacent) r.first = 0;
  return r;
}

// Sizes of self[indices]: `broadcast` is the common shape of the indices.
template <class Sizes, class Flags>
Sizes index_sizes(const Sizes& self, const Flags& indexed, const Sizes& broadcast) {
  IndexedDims place = indexed_dims(indexed, self.size());
  Sizes out;
  size_t plain = 0;
  auto put = [&] {
    for (const auto& s : broadcast) out.push_back(s);
  };
  for (size_t d = 0; d < self.size(); ++d) {
    if (indexed[d]) continue;
    if (plain++ == place.first) put();
    out.push_back(self[d]);
  }
  if (plain <= place.first) put();
  return out;
}

// self's sizes with dim replaced.
template <class Sizes, class S>
Sizes with_dim(const Sizes& self, int64_t dim, const S& size) {
  Sizes out = self;
  if (out.size() > 0) out[dim] = size;
  return out;
}

}  // namespace strata::shape
