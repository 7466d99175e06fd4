// polygamma_, whose self is its second argument.
#include "strata/generated/ops/special.h"
#include "run/copy.h"
#include "strata/generated/by_hand/special.h"
#include "strata/generated/ops/copy.h"

namespace strata::eager {

Tensor polygamma_(const Tensor& self, int64_t n) {
  // Recorded, as its part is, which keeps its operand.
  const Tensor result = ops::polygamma(n, self.requires_grad() ? ops::clone(self) : self);
  check_result(self, result, "polygamma_");
  return ops::copy_(self, result);
}

}  // namespace strata::eager
