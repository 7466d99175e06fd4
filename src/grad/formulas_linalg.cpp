#include "grad/formulas_linalg.h"

#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

Tensor nextafter_grad(const Tensor& grad, const Tensor& self, const Tensor& other) {
  Tensor moved = ops::masked_fill(grad, ops::eq(self, other), Scalar(0));
  return ops::to(ops::sum_to_size(moved, self.sizes()), self.dtype());
}

}  // namespace strata::formulas
