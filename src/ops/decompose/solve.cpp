// Systems of equations, inverses and determinants by the factors P A = L U and L L^H, and triangular systems.
#include <cmath>
#include <complex>
#include <cstring>

#include "core/math.h"
#include "core/promote.h"
#include "run/copy.h"
#include "run/visit.h"
#include "strata/generated/by_hand/decompose.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"
#include "vendor/factors.h"

namespace strata::eager {

namespace {

// The matrix whose factors give the determinant: of a real one its transpose, which row-major memory already is.
Tensor for_determinant(const Tensor& a) { return a.is_complex() ? a : ops::transpose(a, -2, -1); }

constexpr const char* singular_inverse =
    "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.";
constexpr const char* singular_system = "The solver failed because the input matrix is singular.";
constexpr const char* not_positive =
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{} is not positive-definite).";

}  // namespace

void linalg_inv_ex(const Tensor& inverse, const Tensor& info, const Tensor& a, bool check_errors) {
  constexpr const char* op = "linalg.inv";
  Factors f = new_factors(a);
  f.info = info;
  factor_matrices(f, a, op);
  if (a.numel() > 0) {
    copy_values(inverse, ops::eye(a.size(-1), a.dtype(), a.device()));
    solve_factored(f, inverse, batch_sizes(a.sizes()), a.size(-1), 'N', op);
  }
  if (check_errors) check_info(info, op, singular_inverse);
}

Tensor linalg_inv(const Tensor& a) {
  auto [inverse, info] = ops::linalg_inv_ex(a, false);
  ops::_check_info(info, "linalg.inv", singular_inverse);
  return inverse;
}

void linalg_solve_ex(const Tensor& result, const Tensor& info, const Tensor& a, const Tensor& b, bool left,
                     bool check_errors) {
  constexpr const char* op = "linalg.solve";
  const bool vectors = shape::is_vector_case(geometry(a), geometry(b));
  Factors f = new_factors(a);
  f.info = info;
  factor_matrices(f, a, op);
  const Tensor x = vectors ? new_tensor(result, result.sizes()) : result;
  copy_values(x, b);
  // Rows of B, one after another in memory, are the columns of its transpose: X A = B is A^T X^T = B^T.
  const IntArrayRef sizes = result.sizes();
  const size_t d = sizes.size();
  const DimVec batch = vectors ? DimVec(sizes.slice(0, d - 1)) : batch_sizes(sizes);
  solve_factored(f, x, batch, vectors ? 1 : sizes[left ? d - 1 : d - 2], left ? 'N' : 'T', op);
  if (vectors) copy_values(result, x);
  if (check_errors) check_info(info, op, singular_system);
}

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  auto [x, info] = ops::linalg_solve_ex(a, b, left, false);
  ops::_check_info(info, "linalg.solve", singular_system);
  return x;
}

void linalg_solve_triangular(const Tensor& x, const Tensor& a, const Tensor& b, bool upper, bool left,
                             bool unitriangular) {
  constexpr const char* op = "linalg.solve_triangular";
  const DimVec own = batch_sizes(a.sizes()), batch = batch_sizes(x.sizes());
  copy_values(x, b);
  if (x.numel() == 0) return;
  const StrataLapack& library = lapack(op);
  Tensor columns = columns_of(a);
  const int64_t m = b.size(-2), n = b.size(-1), order = a.size(-1);
  parallel_for(0, batch_count(x.sizes()), matrices_of_thread(order, left ? n : m), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      lapack_done(library.triangular(lapack_type(a.dtype()), left, upper, unitriangular, m, n,
                                     matrix(columns, broadcast_index(i, batch, own)), order, matrix(x, i), m),
                  library, op);
  });
}

namespace {

template <class T>
int64_t swaps(const T* pivots, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += pivots[i] != i + 1;
  return count;
}

// body(Tag<T>, batch element, its factors, n, whether an odd number of rows was swapped) for each matrix.
template <class T, class F>
void each_factored(const Factors& f, F&& body) {
  const int64_t n = f.lu.size(-1), count = batch_count(f.lu.sizes());
  for (int64_t b = 0; b < count; ++b) {
    const bool odd = n > 0 && swaps(static_cast<const int32_t*>(vector(f.pivots, b)), n) % 2 != 0;
    body(Tag<T>(), b, static_cast<const T*>(matrix(f.lu, b)), n, odd);
  }
}

template <class F>
void each_diagonal(const Factors& f, F&& body) {
  switch (f.lu.dtype()) {
    case DType::F32:
      return each_factored<float>(f, body);
    case DType::F64:
      return each_factored<double>(f, body);
    case DType::C64:
      return each_factored<std::complex<float>>(f, body);
    default:
      return each_factored<std::complex<double>>(f, body);
  }
}

template <class T>
T product_of(const T* diagonal, int64_t n, bool odd) {
  T r = odd ? T(-1) : T(1);
  for (int64_t i = 0; i < n; ++i) r = r * diagonal[i * (n + 1)];
  return r;
}

}  // namespace

void linalg_det_all(const Tensor& result, const Tensor& lu, const Tensor& pivots, const Tensor& a) {
  const Factors f{lu, pivots, new_tensor(a, batch_sizes(a.sizes()), DType::I32)};
  factor_matrices(f, for_determinant(a), "linalg.det");
  if (a.numel() == 0)
    fill_values(result, Scalar(1));
  else
    each_diagonal(f, [&](auto tag, int64_t b, const auto* diagonal, int64_t n, bool odd) {
      using T = typename decltype(tag)::type;
      result.data<T>()[b] = product_of(diagonal, n, odd);
    });
}

void linalg_slogdet_all(const Tensor& sign, const Tensor& magnitude, const Tensor& lu, const Tensor& pivots,
                        const Tensor& a) {
  const Factors f{lu, pivots, new_tensor(a, batch_sizes(a.sizes()), DType::I32)};
  factor_matrices(f, for_determinant(a), "linalg.slogdet");
  each_diagonal(f, [&](auto tag, int64_t b, const auto* diagonal, int64_t n, bool odd) {
    using T = typename decltype(tag)::type;
    using R = decltype(std::abs(T()));
    T s = odd ? T(-1) : T(1);
    R logarithm = 0;
    for (int64_t i = 0; i < n; ++i) {
      const T d = diagonal[i * (n + 1)];
      R size;
      if constexpr (std::is_same_v<T, R>)
        size = std::abs(d);
      else
        size = math::abs(d);
      s = size == 0 ? T(0) : s * (d / size);
      logarithm += math::log(size);
    }
    sign.data<T>()[b] = s;
    magnitude.data<R>()[b] = logarithm;
  });
}

std::tuple<Tensor, Tensor> slogdet(const Tensor& a) {
  auto [sign, magnitude, lu, pivots] = ops::_linalg_slogdet(a);
  return {sign, magnitude};
}

Tensor logdet(const Tensor& self) {
  check_square(self, "logdet");
  auto [sign, magnitude] = ops::linalg_slogdet(self);
  if (self.is_complex()) return ops::add(magnitude, ops::log(sign));
  return ops::masked_fill(magnitude, ops::eq(sign, Scalar(-1)), Scalar(NAN));
}

void linalg_cholesky_ex(const Tensor& factor, const Tensor& info, const Tensor& a, bool upper, bool check_errors) {
  constexpr const char* op = "linalg.cholesky";
  const int64_t n = a.size(-1), width = a.itemsize();
  copy_values(factor, a);
  fill_values(info, Scalar(0));
  if (a.numel() > 0) {
    const StrataLapack& library = lapack(op);
    parallel_for(0, batch_count(a.sizes()), matrices_of_thread(n, n), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        char* columns = static_cast<char*>(matrix(factor, b));
        lapack_done(library.cholesky(lapack_type(a.dtype()), upper, n, columns, n, info.data<int32_t>() + b), library,
                    op);
        for (int64_t j = 0; j < n; ++j) {
          char* column = columns + j * n * width;
          upper ? std::memset(column + (j + 1) * width, 0, (n - j - 1) * width) : std::memset(column, 0, j * width);
        }
      }
    });
  }
  if (check_errors) check_info(info, op, not_positive);
}

Tensor linalg_cholesky(const Tensor& a, bool upper) {
  auto [factor, info] = ops::linalg_cholesky_ex(a, upper, false);
  ops::_check_info(info, "linalg.cholesky", not_positive);
  return factor;
}

}  // namespace strata::eager
