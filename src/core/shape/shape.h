// Shape rules of joining, repeating and padding, over a size type S.
#pragma once
#include "base/array_ref.h"
#include "base/error.h"
#include "core/shape/arithmetic.h"

namespace strata::shape {

// One more tensor of a join along `dim`: adds its size to that of `into`, whose other sizes it must have.
template <class S, class V>
void join(V& into, ArrayRef<S> sizes, int64_t dim, size_t number) {
  STRATA_CHECK(into.size() == sizes.size(), "Tensors must have same number of dimensions: got ", into.size(), " and ",
               sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (int64_t(d) == dim) continue;
    STRATA_CHECK(into[d] == sizes[d], "Sizes of tensors must match except in dimension ", dim, ". Expected size ",
                 into[d], " but got size ", sizes[d], " for tensor number ", number, " in the list.");
  }
  into[dim] = plus<S>(into[dim], sizes[dim]);
}

template <class S, class V>
V repeated(ArrayRef<S> sizes, ArrayRef<S> repeats) {
  STRATA_CHECK(repeats.size() >= sizes.size(),
               "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  size_t lead = repeats.size() - sizes.size();
  V r(repeats.size());
  for (size_t d = 0; d < repeats.size(); ++d) {
    STRATA_CHECK(repeats[d] >= 0, "Trying to create tensor with negative dimension ", repeats[d], ": ", repeats);
    r[d] = d < lead ? repeats[d] : times(repeats[d], sizes[d - lead]);
  }
  return r;
}

// `pad` lists before and after of each dim, the last dim first.
template <class S, class V>
V padded(ArrayRef<S> sizes, ArrayRef<S> pad) {
  STRATA_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  STRATA_CHECK(sizes.size() >= pad.size() / 2,
               "Length of pad should be no more than twice the number of dimensions of the "
               "input. Pad length is ",
               pad.size(), " while the input has ", sizes.size(), " dimensions.");
  V r(sizes);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    size_t d = sizes.size() - 1 - i;
    r[d] = plus(plus(sizes[d], pad[2 * i]), pad[2 * i + 1]);
    STRATA_CHECK(r[d] >= 0, "The input size ", sizes[d], ", plus negative padding ", pad[2 * i], " and ",
                 pad[2 * i + 1], " resulted in a negative output size, which is invalid. Check dimension ", d,
                 " of your input.");
  }
  return r;
}

}  // namespace strata::shape
