// Pseudo-inverses, ranks and condition numbers from singular values, and equations between tensors of more dims.
#include <cmath>
#include <limits>

#include "core/promote.h"
#include "run/copy.h"
#include "strata/generated/by_hand/factor.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/factor.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/linalg.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"
#include "vendor/lapack_host.h"

namespace strata::eager {

namespace {

struct Tolerance {
  Tensor absolute, relative;
};

double default_relative(const Tensor& a) {
  const double eps = traits(a.dtype()).component == DType::F64 ? std::numeric_limits<double>::epsilon()
                                                               : std::numeric_limits<float>::epsilon();
  return eps * double(std::max(a.size(-1), a.size(-2)));
}

Tensor number(const Tensor& a, double value) { return ops::new_full(a, IntArrayRef(), Scalar(value), DType::F64); }

// PyTorch's rule: a relative tolerance of eps max(m, n) unless it is given, or an absolute one above 0 is.
Tolerance tolerance(const Tensor& a, const Tensor& atol, const Tensor& rtol, const char* op) {
  for (const Tensor* t : {&atol, &rtol})
    STRATA_CHECK(!t->defined() || !t->is_complex(), op, ": ", t == &atol ? "atol" : "rtol",
                 " tensor of complex type is not supported. Got ", scalar_type_name(t->dtype()));
  Tolerance r{atol.defined() ? atol : number(a, 0), rtol};
  if (!rtol.defined()) {
    r.relative = number(a, default_relative(a));
    if (atol.defined()) r.relative = ops::where(ops::gt(atol, Scalar(0)), Scalar(0.0), r.relative);
  }
  return r;
}

Tensor optional_number(const Tensor& a, std::optional<double> value) { return value ? number(a, *value) : Tensor(); }

void check_rank_input(const Tensor& a, const char* op) {
  check_matrices(a, op);
  check_lapack_dtype(a, op);
}

// The larger of both tolerances for each matrix, beside a last dim of values whose largest is given.
Tensor threshold(const Tolerance& t, const Tensor& largest) {
  return ops::maximum(ops::unsqueeze(t.absolute, -1), ops::mul(ops::unsqueeze(t.relative, -1), largest));
}

}  // namespace

Tensor linalg_pinv_tensors(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  constexpr const char* op = "linalg.pinv";
  check_rank_input(a, op);
  const Tolerance t = tolerance(a, atol, rtol, op);
  if (a.numel() == 0) return new_tensor(a, with_matrix(a.sizes(), a.size(-1), a.size(-2)));
  DimVec last{-1};
  if (hermitian) {
    auto [values, vectors] = ops::_linalg_eigh(a, "L", true);
    Tensor sizes = ops::abs(values);
    Tensor kept = ops::gt(sizes, threshold(t, ops::amax(sizes, last, true)));
    Tensor inverse = ops::where(kept, ops::reciprocal(values), Scalar(0.0));
    return ops::matmul(ops::mul(vectors, ops::unsqueeze(inverse, -2)), ops::adjoint(vectors));
  }
  auto [u, s, vh] = ops::_linalg_svd(a, false, true, std::nullopt);
  Tensor kept = ops::gt(s, threshold(t, ops::narrow(s, -1, 0, 1)));
  Tensor inverse = ops::where(kept, ops::reciprocal(s), Scalar(0.0));
  return ops::matmul(ops::mul(ops::adjoint(vh), ops::unsqueeze(inverse, -2)), ops::adjoint(u));
}

Tensor linalg_pinv_numbers(const Tensor& a, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  check_matrices(a, "linalg.pinv");
  return ops::linalg_pinv(a, optional_number(a, atol), optional_number(a, rtol), hermitian);
}

Tensor linalg_pinv_rcond(const Tensor& a, const Tensor& rcond, bool hermitian) {
  check_matrices(a, "linalg.pinv");
  return ops::linalg_pinv(a, number(a, 0), rcond, hermitian);
}

Tensor linalg_matrix_rank_tensors(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  constexpr const char* op = "linalg.matrix_rank";
  check_rank_input(a, op);
  const Tolerance t = tolerance(a, atol, rtol, op);
  if (a.numel() == 0) return ops::new_zeros(a, batch_sizes(a.sizes()), DType::I64);
  Tensor s = hermitian ? ops::abs(ops::linalg_eigvalsh(a)) : ops::linalg_svdvals(a, std::nullopt);
  DimVec last{-1};
  Tensor kept = ops::gt(s, threshold(t, ops::amax(s, last, true)));
  return ops::sum(kept, OptIntArrayRef(last));
}

Tensor linalg_matrix_rank_numbers(const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
                                  bool hermitian) {
  check_matrices(a, "linalg.matrix_rank");
  return ops::linalg_matrix_rank(a, optional_number(a, atol), optional_number(a, rtol), hermitian);
}

Tensor linalg_matrix_rank_tol(const Tensor& a, const Tensor& tol, bool hermitian) {
  check_matrices(a, "linalg.matrix_rank");
  return ops::linalg_matrix_rank(a, tol, number(a, 0), hermitian);
}

namespace {

Tensor condition_of_nothing(const Tensor& a) {
  return ops::new_zeros(a, batch_sizes(a.sizes()), traits(a.dtype()).component);
}

template <class Order>
Tensor by_inverse(const Tensor& a, const Order& order, const std::string& name) {
  STRATA_CHECK(a.size(-1) == a.size(-2), "linalg.cond(ord=", name,
               "): A must be batches of square matrices, but they are ", a.size(-2), " by ", a.size(-1), " matrices");
  auto [inverse, info] = ops::linalg_inv_ex(a, false);
  const Tensor singular = ops::gt(info, Scalar(0));
  Tensor known = ops::masked_fill(inverse, ops::unsqueeze(ops::unsqueeze(singular, -1), -1), Scalar(INFINITY));
  DimVec matrices{-2, -1};
  const Tensor product = ops::mul(ops::linalg_matrix_norm(a, order, matrices, false, std::nullopt),
                                  ops::linalg_matrix_norm(known, order, matrices, false, std::nullopt));
  return ops::masked_fill(product, singular, Scalar(INFINITY));  // of zeros, too: 0 times infinity
}

}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  STRATA_CHECK(self.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions, got shape ",
               self.sizes());
  const double order = p ? p->to_double() : 2;
  STRATA_CHECK(std::abs(order) == 1 || std::abs(order) == 2 || std::isinf(order),
               "linalg.cond got an invalid norm type: ", order);
  if (self.numel() == 0) return condition_of_nothing(self);
  if (std::abs(order) != 2) return by_inverse(self, Scalar(order), str_cat(order));
  Tensor s = ops::linalg_svdvals(self, std::nullopt), greatest = ops::select(s, -1, 0), least = ops::select(s, -1, -1);
  return order > 0 ? ops::div(greatest, least) : ops::div(least, greatest);
}

Tensor linalg_cond(const Tensor& self, std::string_view p) {
  STRATA_CHECK(self.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions, got shape ",
               self.sizes());
  STRATA_CHECK(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  check_square(self, p == "fro" ? "linalg.cond(ord=fro)" : "linalg.cond(ord=nuc)");
  if (self.numel() == 0) return condition_of_nothing(self);
  if (p == "fro") return by_inverse(self, p, "fro");
  Tensor s = ops::linalg_svdvals(self, std::nullopt);
  DimVec last{-1};
  return ops::mul(ops::sum(s, OptIntArrayRef(last)), ops::sum(ops::reciprocal(s), OptIntArrayRef(last)));
}

namespace {

// The matrix L or U of L L^H = U^H U, as L.
Tensor lower_of(const Tensor& factor, bool upper) { return upper ? ops::adjoint(factor) : factor; }

}  // namespace

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  constexpr const char* op = "cholesky_solve";
  STRATA_CHECK(b.dim() >= 2, op, ": b should have at least 2 dimensions, but has ", b.dim(), " dimensions instead");
  check_square(factor, op);
  Tensor l = lower_of(factor, upper);
  Tensor half = ops::linalg_solve_triangular(l, b, false, true, false);
  return ops::linalg_solve_triangular(ops::adjoint(l), half, true, true, false);
}

Tensor cholesky_inverse(const Tensor& factor, bool upper) {
  check_square(factor, "cholesky_inverse");
  const KindGuard kind(factor);
  Tensor one = new_tensor(factor, factor.sizes());
  copy_values(one, ops::eye(factor.size(-1), factor.dtype(), factor.device()));
  return cholesky_solve(one, factor, upper);
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  STRATA_CHECK(ind > 0, "Expected a strictly positive integer for 'ind' (linalg.tensorinv), got ", ind);
  int64_t rows = 1, columns = 1;
  DimVec sizes;
  for (int64_t d = ind; d < self.dim(); ++d) sizes.push_back(self.sizes()[d]), columns *= self.sizes()[d];
  for (int64_t d = 0; d < std::min(ind, self.dim()); ++d) sizes.push_back(self.sizes()[d]), rows *= self.sizes()[d];
  STRATA_CHECK(rows == columns,
               "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
               "prod(self.shape[:ind]), but got ",
               columns, " != ", rows);
  return ops::reshape(ops::linalg_inv(ops::reshape(self, {rows, rows})), sizes);
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptIntArrayRef dims) {
  Tensor a = self;
  if (dims) {
    DimVec from(*dims), to;
    for (size_t i = 0; i < dims->size(); ++i) to.push_back(self.dim() - int64_t(dims->size()) + int64_t(i));
    a = ops::movedim(self, from, to);
  }
  DimVec sizes;
  int64_t columns = 1;
  for (int64_t d = other.dim(); d < a.dim(); ++d) sizes.push_back(a.sizes()[d]), columns *= a.sizes()[d];
  STRATA_CHECK(columns == other.numel() && a.numel() == columns * columns,
               "linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
               "prod(self.shape[:other.ndim]), but got shapes ",
               self.sizes(), " and ", other.sizes());
  Tensor x = ops::linalg_solve(ops::reshape(a, {columns, columns}), ops::reshape(other, {columns}), true);
  return ops::reshape(x, sizes);
}

}  // namespace strata::eager
