// Sizes of matrix products, over a size type S.
#pragma once
#include <cstddef>

namespace strata::shape {

// Sizes of matmul(a, b) from those of its operands (1 dim or more each) and the broadcast of their leading dims.
// `List` holds S and has push_back.
template <class List, class Sizes, class Leading>
List matmul_sizes(const Sizes& a, const Sizes& b, const Leading& leading) {
  List out;
  for (const auto& s : leading) out.push_back(s);
  if (a.size() > 1) out.push_back(a[a.size() - 2]);
  if (b.size() > 1) out.push_back(b[b.size() - 1]);
  return out;
}

}  // namespace strata::shape
