// The factors P A = L U themselves: made, taken apart, and used to solve.
#include <numeric>

#include "core/promote.h"
#include "run/copy.h"
#include "strata/generated/by_hand/factor.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/factor.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"
#include "vendor/factors.h"

namespace strata::eager {

namespace {

constexpr const char* zero_pivot =
    "U[{},{}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)";

// Values that name rows of LU.
void check_rows(const Tensor& lu, const Tensor& pivots, const char* op) {
  const Tensor flat = as_contiguous(pivots);
  for (int64_t i = 0; i < flat.numel(); ++i)
    STRATA_CHECK(flat.data<int32_t>()[i] >= 1 && flat.data<int32_t>()[i] <= lu.size(-2), op,
                 ": pivots must be between 1 and ", lu.size(-2), ", the rows of LU, got ", flat.data<int32_t>()[i],
                 "; did you properly pass the result of lu_factor?");
}

}  // namespace

void linalg_lu_factor_ex(const Tensor& lu, const Tensor& pivots, const Tensor& info, const Tensor& a, bool,
                         bool check_errors) {
  constexpr const char* op = "linalg.lu_factor";
  factor_matrices({lu, pivots, info}, a, op);
  if (check_errors) check_info(info, op, zero_pivot);
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] = ops::linalg_lu_factor_ex(a, pivot, false);
  ops::_check_info(info, "linalg.lu_factor", zero_pivot);
  return {lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] = ops::linalg_lu_factor_ex(a, pivot, false);
  return ops::lu_unpack(lu, pivots, true, pivot);
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots, bool data, bool permutation) {
  constexpr const char* op = "lu_unpack";
  check_matrices(lu, op);
  if (permutation) {
    check_same_device(lu, pivots, op);
    shape::check_pivots(geometry(lu), geometry(pivots), op);
    check_rows(lu, pivots, op);
  }
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Tensor p = new_tensor(lu, {0}), l = new_tensor(lu, {0}), u = new_tensor(lu, {0});
  if (data) {
    l = ops::tril(ops::narrow(lu, -1, 0, k), -1);
    fill_values(ops::diagonal(l, 0, -2, -1), Scalar(1));
    u = ops::triu(ops::narrow(lu, -2, 0, k));
  }
  if (!permutation) return {p, l, u};
  p = new_tensor(lu, with_matrix(lu.sizes(), m, m));
  fill_values(p, Scalar(0));
  // Row i of L U is row order[i] of A: P has a one at (order[i], i).
  Tensor swaps = as_contiguous(pivots), orders = new_tensor(lu, with_vector(lu.sizes(), m), DType::I64);
  for (int64_t b = 0; b < batch_count(lu.sizes()); ++b) {
    int64_t* order = static_cast<int64_t*>(vector(orders, b));
    std::iota(order, order + m, int64_t(0));
    const int32_t* from = static_cast<const int32_t*>(vector(swaps, b));
    for (int64_t i = 0; i < k; ++i) std::swap(order[i], order[from[i] - 1]);
  }
  ops::scatter_(p, -2, ops::unsqueeze(orders, -2), Scalar(1));
  return {p, l, u};
}

void linalg_lu_solve(const Tensor& x, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                     bool adjoint) {
  constexpr const char* op = "linalg.lu_solve";
  check_rows(lu, pivots, op);
  copy_values(x, b);
  // X A = B is A^H X^H = B^H, and X A^H = B is A X^H = B^H.
  // Rows in memory are the columns of the transpose, not of the adjoint: A^T for the first, and conjugates for the
  // other.
  const bool conjugate = !left && adjoint && b.is_complex();
  if (conjugate) copy_values(x, ops::_conjugate(b));
  const char transposed = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
  Factors f{columns_of(lu), as_contiguous(pivots), Tensor()};
  solve_factored(f, x, batch_sizes(x.sizes()), left ? b.size(-1) : b.size(-2), transposed, op);
  if (conjugate) copy_values(x, ops::_conjugate(x));
}

}  // namespace strata::eager
