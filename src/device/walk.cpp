#include "device/walk.h"

namespace strata::device {

void Walk::join() {
  size_t kept = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    bool joins = kept > 0;
    for (const DimVec& s : strides) joins = joins && s[kept - 1] == s[d] * sizes[d];
    if (joins) --kept;
    sizes[kept] = joins ? sizes[kept] * sizes[d] : sizes[d];
    for (DimVec& s : strides) s[kept] = s[d];
    ++kept;
  }
  const bool none = kept == 0;
  sizes.resize(none ? 1 : kept);
  if (none) sizes[0] = 1;
  for (DimVec& s : strides) {
    s.resize(none ? 1 : kept);
    if (none) s[0] = 0;
  }
}

DimVec strides_over(const Tensor& t, IntArrayRef sizes) {
  DimVec out(sizes.size(), 0);
  const size_t lead = sizes.size() - size_t(t.dim());
  for (size_t d = lead; d < sizes.size(); ++d)
    if (t.sizes()[d - lead] != 1) out[d] = t.strides()[d - lead];
  return out;
}

}  // namespace strata::device
