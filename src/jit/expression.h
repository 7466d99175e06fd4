// Operators that programs add as an expression, as an entry of the table says one: a kernel that is printed and
// compiled when it is first needed, and a part of fused kernels and of devices' as those of the table are.
#pragma once
#include "dispatch/operator.h"
#include "run/pointwise.h"

namespace strata::jit {

struct Expression {
  std::string schema;   // "mylib::swish(Tensor self, *, float beta=1.0) -> Tensor": tensors and numbers, one new result
  std::string text;     // of the names of its arguments, as `compute:` of the table: "self * sigmoid(beta * self)"
  uint32_t dtypes = 0;  // a bit each
  eager::Promote promote = eager::Promote::Common;
};

// Raises Value for a schema or a text that makes no sense, for any of the dtypes.
Operator& define_expression(const Expression& e);

}  // namespace strata::jit
