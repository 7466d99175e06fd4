// Eigenvalues of general matrices, and least squares.
#include <limits>

#include "base/checked.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "eager/lapack_host.h"
#include "strata/generated/eager_factor.h"
#include "strata/generated/ops/factor.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

std::tuple<Tensor, Tensor> eigen(const Tensor& a, bool with_vectors, const char* op) {
  check_square(a, op);
  check_lapack_dtype(a, op);
  const DType t = to_complex(a.dtype());
  const int64_t n = a.size(-1);
  Tensor values = new_tensor(a, with_vector(a.sizes(), n), t);
  Tensor vectors = with_vectors ? new_columns(a, a.sizes(), t) : new_tensor(a, {0}, t);
  if (a.is_meta() || a.numel() == 0) return {values, vectors};
  const StrataLapack& library = lapack(op);
  Tensor work = columns_of(a), info = new_tensor(a, batch_sizes(a.sizes()), DType::I32);
  parallel_for(0, batch_count(a.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      void* matrix_b = matrix(work, b);
      int32_t& verdict = info.data<int32_t>()[b];
      verdict = not_finite;
      if (!all_finite(matrix_b, n * n, a.dtype())) continue;
      lapack_done(library.eig(lapack_type(a.dtype()), with_vectors, n, matrix_b, n, vector(values, b),
                              with_vectors ? matrix(vectors, b) : nullptr, n, &verdict),
                  library, op);
    }
  });
  check_info(info, op, [](int32_t verdict) { return no_convergence(verdict, "eigenvalues"); });
  return {values, vectors};
}

// LAPACK's letter of a way to least squares.
char way_of(std::optional<std::string_view> driver) {
  const std::string_view name = driver.value_or("gelsy");
  STRATA_CHECK(name == "gels" || name == "gelsy" || name == "gelsd" || name == "gelss",
               "linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got ", name);
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

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& a) { return eigen(a, true, "linalg.eig"); }
Tensor linalg_eigenvalues(const Tensor& a) { return std::get<0>(eigen(a, false, "linalg.eigvals")); }
Tensor linalg_eigvals(const Tensor& a) {
  return may_need_grad(a) ? std::get<0>(ops::linalg_eig(a)) : ops::_linalg_eigvals(a);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  constexpr const char* op = "linalg.lstsq";
  STRATA_CHECK(a.dim() >= 2, op, ": input must have at least 2 dimensions, got shape ", a.sizes());
  STRATA_CHECK(b.dim() >= 1, op, ": other must have at least 1 dimension, got shape ", b.sizes());
  STRATA_CHECK(a.dtype() == b.dtype(), op, ": Expected input and other to have the same dtype, but got input's dtype ",
               scalar_type_name(a.dtype()), " and other's dtype ", scalar_type_name(b.dtype()));
  check_same_device(a, b, op);
  STRATA_CHECK(
      a.dim() - b.dim() == 0 || a.dim() - b.dim() == 1, op,
      ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1, got shapes ",
      a.sizes(), " and ", b.sizes());
  check_precise_dtype(a, op);
  const char way = way_of(driver);
  const bool vectors = a.dim() != b.dim();
  const Tensor sides = vectors ? ops::unsqueeze(b, -1) : b;
  const int64_t m = a.size(-2), n = a.size(-1), columns = sides.size(-1), more = std::max(m, n);
  STRATA_CHECK(sides.size(-2) == m, op, ": input.size(-2) should match other.size(-2), got shapes ", a.sizes(), " and ",
               b.sizes());
  DimVec sizes = broadcast_shapes(batch_sizes(a.sizes()), batch_sizes(sides.sizes()));
  const int64_t count = checked_numel(sizes, op);
  const DimVec batch = sizes;
  sizes.push_back(m);
  sizes.push_back(n);
  const DType real = traits(a.dtype()).component;
  Tensor x = new_columns(a, with_matrix(sizes, more, columns));
  Tensor rank = way == 'L' ? new_tensor(a, {0}, DType::I64) : new_tensor(a, batch, DType::I64);
  Tensor values =
      way == 'D' || way == 'S' ? new_tensor(a, with_vector(sizes, std::min(m, n)), real) : new_tensor(a, {0}, real);
  bool full = true;
  if (!a.is_meta() && (m == 0 || n == 0 || columns == 0 || count == 0)) {
    fill_values(x, Scalar(0));
    fill_values(rank, Scalar(0));
    fill_values(values, Scalar(0));
    full = false;
  } else if (!a.is_meta()) {
    const StrataLapack& library = lapack(op);
    const double limit = rcond.value_or(
        (real == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon()) *
        double(more));
    Tensor work = columns_of(a, sizes), info = new_tensor(a, batch, DType::I32),
           ranks = new_tensor(a, batch, DType::I32);
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
    for (int64_t i = 0; i < count; ++i) full = full && (way == 'L' || ranks.data<int32_t>()[i] == n);
    if (way != 'L') copy_values(rank, ranks);
  }
  Tensor residuals = new_tensor(a, {0}, real);
  if (m > n && way != 'Y' && full) {
    Tensor below = ops::abs(ops::narrow(x, -2, n, m - n));
    DimVec rows{-2};
    residuals = ops::sum(ops::mul(below, below), OptIntArrayRef(rows));
  }
  DimVec result = with_matrix(sizes, n, columns), strides(x.strides());
  if (vectors) result.pop_back(), strides.pop_back();
  return {x.alias(result, strides, x.storage_offset()), residuals, rank, values};
}

}  // namespace strata::eager
