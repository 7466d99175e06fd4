// Eigenvalues of general matrices, and least squares.
#include <limits>

#include "base/checked.h"
#include "core/promote.h"
#include "run/copy.h"
#include "run/pointwise.h"
#include "strata/generated/by_hand/factor.h"
#include "strata/generated/ops/factor.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"
#include "vendor/lapack_host.h"

namespace strata::eager {

namespace {

// `vectors` may be undefined.
void eigen(const Tensor& values, const Tensor& vectors, const Tensor& a, const char* op) {
  if (a.numel() == 0) return;
  const int64_t n = a.size(-1);
  const StrataLapack& library = lapack(op);
  Tensor work = columns_of(a), info = new_tensor(a, batch_sizes(a.sizes()), DType::I32);
  parallel_for(0, batch_count(a.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      void* matrix_b = matrix(work, b);
      int32_t& verdict = info.data<int32_t>()[b];
      verdict = not_finite;
      if (!all_finite(matrix_b, n * n, a.dtype())) continue;
      lapack_done(library.eig(lapack_type(a.dtype()), vectors.defined(), n, matrix_b, n, vector(values, b),
                              vectors.defined() ? matrix(vectors, b) : nullptr, n, &verdict),
                  library, op);
    }
  });
  check_info(info, op, [](int32_t verdict) { return no_convergence(verdict, "eigenvalues"); });
}

// LAPACK's letter of a way to least squares.
char way_of(std::optional<std::string_view> driver) {
  const std::string_view name = driver.value_or("gelsy");
  return name == "gelsy" ? 'Y' : name == "gelsd" ? 'D' : name == "gelss" ? 'S' : 'L';
}

std::string not_full_rank(int32_t verdict) {
  if (verdict == not_finite) return no_convergence(verdict, "singular values");
  return str_cat(
      "The least squares solution could not be computed because the input matrix does not have full rank "
      "(error code: ",
      verdict, ").");
}

}  // namespace

void linalg_eig(const Tensor& values, const Tensor& vectors, const Tensor& a) {
  eigen(values, vectors, a, "linalg.eig");
}
void linalg_eigenvalues(const Tensor& values, const Tensor& a) { eigen(values, Tensor(), a, "linalg.eigvals"); }
Tensor linalg_eigvals(const Tensor& a) {
  return may_need_grad(a) ? std::get<0>(ops::linalg_eig(a)) : ops::_linalg_eigvals(a);
}

void linalg_lstsq(const Tensor& solution, const Tensor& residuals, const Tensor& rank, const Tensor& values,
                  const Tensor& a, const Tensor& b, std::optional<double> rcond,
                  std::optional<std::string_view> driver) {
  constexpr const char* op = "linalg.lstsq";
  const char way = way_of(driver);
  const bool vectors = shape::is_vector_case(geometry(a), geometry(b));
  const Tensor sides = vectors ? ops::unsqueeze(b, -1) : b;
  const int64_t m = a.size(-2), n = a.size(-1), columns = sides.size(-1), more = std::max(m, n);
  const DimVec batch = broadcast_shapes(batch_sizes(a.sizes()), batch_sizes(sides.sizes()));
  const int64_t count = checked_numel(batch, op);
  if (m == 0 || n == 0 || columns == 0 || count == 0) {
    for (const Tensor& t : {solution, rank, values}) fill_values(t, Scalar(0));
    return;
  }
  DimVec sizes = batch;
  sizes.push_back(m);
  sizes.push_back(n);
  const StrataLapack& library = lapack(op);
  const double limit =
      rcond.value_or((traits(a.dtype()).component == DType::F64 ? std::numeric_limits<double>::epsilon()
                                                                : std::numeric_limits<float>::epsilon()) *
                     double(more));
  Tensor work = columns_of(a, sizes), x = new_columns(a, with_matrix(sizes, more, columns)),
         info = new_tensor(a, batch, DType::I32), ranks = new_tensor(a, batch, DType::I32);
  fill_values(x, Scalar(0));
  copy_values(ops::narrow(x, -2, 0, m), sides);
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int32_t& verdict = info.data<int32_t>()[i];
      int32_t& found = ranks.data<int32_t>()[i];
      verdict = not_finite;
      found = int32_t(n);
      if (!all_finite(matrix(work, i), m * n, a.dtype())) continue;
      lapack_done(
          library.least_squares(lapack_type(a.dtype()), way, m, n, columns, matrix(work, i), m, matrix(x, i), more,
                                values.numel() > 0 ? vector(values, i) : nullptr, limit, &found, &verdict),
          library, op);
    }
  });
  check_info(info, op, not_full_rank);
  bool full = true;
  for (int64_t i = 0; i < count; ++i) full = full && (way == 'L' || ranks.data<int32_t>()[i] == n);
  if (way != 'L') copy_values(rank, ranks);
  const Tensor first = ops::narrow(x, -2, 0, n);
  copy_values(solution, vectors ? ops::squeeze(first, -1) : first);
  if (m == n || way == 'Y' || m < n) return;
  if (!full) return resize_tensor(residuals, {0});  // there are none then
  Tensor below = ops::abs(ops::narrow(x, -2, n, m - n));
  DimVec rows{-2};
  copy_values(residuals, ops::sum(ops::mul(below, below), OptIntArrayRef(rows)));
}

}  // namespace strata::eager
