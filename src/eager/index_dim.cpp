// index_fill with a tensor's value.
#include "eager/index_args.h"
#include "strata/generated/eager_index.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/index.h"

namespace strata::eager {

namespace {
Scalar fill_value(const Tensor& value) {
  STRATA_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
               value.dim(), " dimension(s).");
  return value.is_meta() ? Scalar(0) : ops::item(value);
}
}  // namespace

void index_fill_tensor_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  ops::index_fill_(self, dim, index, fill_value(value));
}

Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  return ops::index_fill(self, dim, index, fill_value(value));
}

}  // namespace strata::eager
