// Softmax and log-softmax along a dim.
#include "base/checked.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "strata/generated/eager_norm.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/norm.h"

namespace strata::eager {

namespace {

void check_float(const Tensor& t, const char* op) {
  STRATA_CHECK_NOT_IMPLEMENTED(t.is_floating_point(), "\"", op, "\" not implemented for '", scalar_type_name(t.dtype()),
                               "'; pass dtype= or convert with .to() first");
}

Tensor along(const RowsOp& op, const Tensor& self, int64_t dim, bool half_to_float, const char* name) {
  wrap_dim(dim, self.dim());
  if (self.numel() > 0) check_float(self, name);
  STRATA_CHECK(!half_to_float || self.dtype() == DType::F16, name, ": conversion is supported for Half type only");
  Tensor x = half_to_float ? as_dtype(self, DType::F32) : self;
  DimVec dims = row_dims(x, dim);
  if (x.numel() == 0) return new_tensor(x, x.sizes());
  const Tensor* in[] = {&x};
  return rows(op, {in, 1}, {}, dims, false)[0];
}

Tensor backward(const RowsOp& op, const Tensor& grad, const Tensor& output, int64_t dim, DType input_dtype,
                const char* name) {
  check_float(grad, name);
  STRATA_CHECK(grad.sizes() == output.sizes(), name, ": expected grad_output and output of one shape, got ",
               grad.sizes(), " and ", output.sizes());
  DimVec dims = row_dims(grad, dim);
  if (grad.numel() == 0) return new_tensor(grad, grad.sizes(), input_dtype);
  const Tensor* in[] = {&grad, &output};
  return as_dtype(rows(op, {in, 2}, {}, dims, false)[0], input_dtype);
}

}  // namespace

Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::_softmax(dtype ? ops::to(self, *dtype) : self, dim, false);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::_log_softmax(dtype ? ops::to(self, *dtype) : self, dim, false);
}

Tensor softmax_along(const Tensor& self, int64_t dim, bool half_to_float) {
  return along(kernels::softmax_rows, self, dim, half_to_float, "softmax");
}
Tensor log_softmax_along(const Tensor& self, int64_t dim, bool half_to_float) {
  return along(kernels::log_softmax_rows, self, dim, half_to_float, "log_softmax");
}
Tensor softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) {
  return backward(kernels::softmax_backward_rows, grad_output, output, dim, input_dtype, "_softmax_backward_data");
}
Tensor log_softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) {
  return backward(kernels::log_softmax_backward_rows, grad_output, output, dim, input_dtype,
                  "_log_softmax_backward_data");
}

}  // namespace strata::eager
