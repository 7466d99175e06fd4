// Norms, products and powers of matrices, composed of operators.
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "compose/powers.h"
#include "core/promote.h"
#include "run/copy.h"
#include "run/visit.h"
#include "strata/generated/by_hand/linalg.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/linalg.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/vector_norm.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

void check_matrices(const Tensor& a, IntArrayRef dim, const char* op) {
  STRATA_CHECK(a.dim() >= 2, op, ": The input tensor A must have at least 2 dimensions, got shape ", a.sizes());
  STRATA_CHECK(dim.size() == 2, op, ": dim must be a 2-tuple. Got ", dim);
  STRATA_CHECK(wrap_dim(dim[0], a.dim()) != wrap_dim(dim[1], a.dim()), op, ": dims must be different. Got (", dim[0],
               ", ", dim[1], ")");
  STRATA_CHECK(is_differentiable(a.dtype()), op, ": Expected a floating point or complex tensor as input. Got ",
               a.dtype());
}

void check_precision(const Tensor& a, std::optional<DType> dtype) {
  const DType t = dtype.value_or(a.dtype());
  STRATA_CHECK(t != DType::F16 && t != DType::BF16, "linalg.matrix_norm: Low precision dtypes not supported. Got ",
               scalar_type_name(t));
}

// Singular values of the matrices of two dims, which become the last one.
Tensor singular_values(const Tensor& a, IntArrayRef dim, std::optional<DType> dtype) {
  Tensor x = dtype ? ops::to(a, *dtype) : a;
  const DimVec from(dim), last{-2, -1};
  return ops::linalg_svdvals(ops::movedim(x, from, last), std::nullopt);
}

// A result of one number per matrix, with both dims put back as 1 if asked for.
Tensor with_dims(Tensor t, int64_t first, int64_t second, bool keepdim) {
  if (!keepdim) return t;
  return ops::unsqueeze(ops::unsqueeze(t, std::min(first, second)), std::max(first, second));
}

// The greatest or least along dim; the norm of nothing is 0.
Tensor extreme(const Tensor& t, int64_t dim, bool greatest, bool keepdim) {
  DimVec over{dim};
  if (greatest && t.size(dim) == 0) return ops::sum(t, OptIntArrayRef(over), keepdim);
  return greatest ? ops::amax(t, over, keepdim) : ops::amin(t, over, keepdim);
}

Tensor squared(const Tensor& t) {
  STRATA_CHECK(t.dim() >= 2, "linalg.matrix_power: The input tensor A must have at least 2 dimensions.");
  STRATA_CHECK(t.size(-1) == t.size(-2), "linalg.matrix_power: A must be batches of square matrices, but they are ",
               t.size(-2), " by ", t.size(-1), " matrices");
  return t;
}

}  // namespace

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptIntArrayRef dim, bool keepdim,
                   std::optional<DType> dtype) {
  STRATA_CHECK(!dim || dim->size() == 1 || dim->size() == 2,
               "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", dim ? *dim : IntArrayRef());
  STRATA_CHECK(dim || !ord || self.dim() == 1 || self.dim() == 2,
               "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", self.dim(), "D.");
  if (ord && ((dim && dim->size() == 2) || (!dim && self.dim() == 2))) {
    DimVec last{0, 1};
    return ops::linalg_matrix_norm(self, *ord, dim ? *dim : IntArrayRef(last), keepdim, dtype);
  }
  return ops::linalg_vector_norm(self, ord.value_or(Scalar(2.0)), dim, keepdim, dtype);
}

Tensor linalg_norm(const Tensor& self, std::string_view ord, OptIntArrayRef dim, bool keepdim,
                   std::optional<DType> dtype) {
  STRATA_CHECK(!dim || dim->size() == 2, "linalg.norm: If a string ord is given, dim must be of length 2. Got ",
               dim ? *dim : IntArrayRef());
  STRATA_CHECK(dim || self.dim() == 2,
               "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", self.dim(), "D.");
  DimVec last{0, 1};
  return ops::linalg_matrix_norm(self, ord, dim ? *dim : IntArrayRef(last), keepdim, dtype);
}

Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim,
                          std::optional<DType> dtype) {
  check_matrices(self, dim, "linalg.matrix_norm");
  STRATA_CHECK(!ord.is_complex(), "linalg.matrix_norm: Expected a non-complex scalar as the order of norm.");
  const double p = ord.to_double(), size = std::abs(p);
  STRATA_CHECK(size == 1 || size == 2 || std::isinf(size), "linalg.matrix_norm: Order ", p, " not supported.");
  const int64_t rows = wrap_dim(dim[0], self.dim()), columns = wrap_dim(dim[1], self.dim());
  if (size == 2) {
    check_precision(self, dtype);
    return with_dims(extreme(singular_values(self, {rows, columns}, dtype), -1, p > 0, false), rows, columns, keepdim);
  }
  DimVec summed{size == 1 ? rows : columns};
  int64_t left = size == 1 ? columns : rows;
  Tensor sums = ops::linalg_vector_norm(self, Scalar(1.0), OptIntArrayRef(summed), keepdim, dtype);
  if (!keepdim && left > summed[0]) --left;
  return extreme(sums, left, p > 0, keepdim);
}

Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim,
                          std::optional<DType> dtype) {
  check_matrices(self, dim, "linalg.matrix_norm");
  if (ord == "nuc") {
    check_precision(self, dtype);
    const int64_t rows = wrap_dim(dim[0], self.dim()), columns = wrap_dim(dim[1], self.dim());
    DimVec values{-1};
    return with_dims(ops::sum(singular_values(self, {rows, columns}, dtype), OptIntArrayRef(values)), rows, columns,
                     keepdim);
  }
  STRATA_CHECK(ord == "fro", "linalg.matrix_norm: Order ", ord, " not supported.");
  return ops::linalg_vector_norm(self, Scalar(2.0), OptIntArrayRef(dim), keepdim, dtype);
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  for (const Tensor* t : {&x, &y})
    STRATA_CHECK(is_differentiable(t->dtype()),
                 "linalg.vecdot: Expected a floating point or complex tensor as input. Got ", t->dtype());
  DimVec along{dim};
  return ops::sum(ops::mul(ops::_conjugate(x), y), OptIntArrayRef(along));
}

Tensor linalg_multi_dot(TensorList tensors) {
  const size_t n = tensors.size();
  STRATA_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  std::vector<Tensor> matrices;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& t = tensors[i];
    const bool end = i == 0 || i + 1 == n;
    STRATA_CHECK(t.dim() == 2 || (end && t.dim() == 1), "multi_dot(): tensor ", i, " must be ", end ? "1D or 2D" : "2D",
                 " but got ", t.dim(), "D");
    STRATA_CHECK(t.dtype() == tensors[0].dtype(),
                 "multi_dot(): all tensors must have be the same dtype but tensor 0 is ", tensors[0].dtype(),
                 " and tensor ", i, " ", t.dtype());
    matrices.push_back(t.dim() == 2 ? t : ops::unsqueeze(t, i == 0 ? 0 : 1));
  }
  for (size_t i = 1; i < n; ++i)
    STRATA_CHECK(matrices[i - 1].size(1) == matrices[i].size(0), "multi_dot(): tensors ", i - 1, " and ", i,
                 " with shapes ", tensors[i - 1].sizes(), " and ", tensors[i].sizes(), " cannot be multiplied");
  Tensor r = ops::chain_matmul(matrices);
  if (tensors[n - 1].dim() == 1) r = ops::squeeze(r, -1);
  return tensors[0].dim() == 1 ? ops::squeeze(r, 0) : r;
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  squared(self);
  if (is_half(self.dtype()) && n > 2)  // one rounding, not one a product
    return ops::to(ops::linalg_matrix_power(ops::to(self, DType::F32), n), self.dtype());
  if (n == 0) {
    return ops::copy_(ops::clone(self, MemoryFormat::Contiguous), ops::eye(self.size(-1), self.dtype(), self.device()));
  }
  Tensor result, power = n < 0 ? ops::linalg_inv(self) : self;
  for (uint64_t rest = n < 0 ? -uint64_t(n) : uint64_t(n); rest > 0; rest /= 2) {
    if (rest % 2) result = result.defined() ? ops::matmul(result, power) : power;
    if (rest > 1) power = ops::matmul(power, power);
  }
  return n == 1 ? ops::clone(result, MemoryFormat::Contiguous) : result;
}

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> columns) {
  const DType t = x.dtype();
  STRATA_CHECK(t != DType::Bool && t != DType::F16 && t != DType::BF16,
               "linalg.vander supports floating point, complex, and integer tensors, but got ", scalar_type_name(t));
  STRATA_CHECK(x.dim() > 0 || columns, "linalg.vander: expected N for an x without dims");
  const int64_t n = columns ? *columns : x.size(-1);
  STRATA_CHECK(n > 1, "N must be greater than 1. linalg.vander got ", n);
  return powers_of(x.dim() == 0 ? ops::unsqueeze(x, 0) : x, n);
}

}  // namespace strata::eager
