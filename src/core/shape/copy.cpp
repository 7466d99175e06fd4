#include "core/shape/copy.h"

#include <algorithm>

namespace strata::shape {

template <class S>
Prepared<S> copy_from(const Geometry<S>& self, const Geometry<S>& src) {
  Prepared<S> r(self.sizes, self.dtype);
  if (self.sizes == src.sizes) return r;
  const size_t n = std::max(self.sizes.size(), src.sizes.size());
  Sizes<S> shape(n, S(1));
  bool stays = n == self.sizes.size();
  for (size_t d = n; d-- > 0;) {
    const S a = d < n - self.sizes.size() ? S(1) : self.sizes[d - (n - self.sizes.size())];
    const S b = d < n - src.sizes.size() ? S(1) : src.sizes[d - (n - src.sizes.size())];
    STRATA_CHECK(a == b || a == S(1) || b == S(1), "The size of tensor a (", a, ") must match the size of tensor b (",
                 b, ") at non-singleton dimension ", d);
    shape[d] = a == S(1) ? b : a;
    stays = stays && shape[d] == a;
  }
  STRATA_CHECK(stays, "output with shape ", self.sizes, " doesn't match the broadcast shape ", ArrayRef<S>(shape));
  r.spread = 1 << 1;
  return r;
}

#define STRATA_RULES(S) template Prepared<S> copy_from(const Geometry<S>&, const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
