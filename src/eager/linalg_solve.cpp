// Systems of equations, inverses and determinants by the factors P A = L U and L L^H, and triangular systems.
#include <cmath>
#include <complex>
#include <cstring>

#include "core/math.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "eager/linalg_factors.h"
#include "eager/visit.h"
#include "strata/generated/eager_decompose.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

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

bool is_vector_case(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  IntArrayRef s = a.sizes();
  return a.dim() - 1 == b.dim() && b.sizes() == IntArrayRef(s.data(), s.size() - 1);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& a, bool check_errors) {
  constexpr const char* op = "linalg.inv";
  check_square(a, op);
  check_precise_dtype(a, op);
  Factors f = factor_matrices(a, op);
  Tensor inverse = new_columns(a, a.sizes());
  if (!a.is_meta() && a.numel() > 0) {
    copy_values(inverse, ops::eye(a.size(-1), a.dtype(), a.device()));
    solve_factored(f, inverse, batch_sizes(a.sizes()), a.size(-1), 'N', op);
  }
  if (check_errors) check_info(f.info, op, singular_inverse);
  return {inverse, f.info};
}

Tensor linalg_inv(const Tensor& a) {
  auto [inverse, info] = ops::linalg_inv_ex(a, false);
  ops::_check_info(info, "linalg.inv", singular_inverse);
  return inverse;
}

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  constexpr const char* op = "linalg.solve";
  check_square(a, op);
  check_dtype_unless_empty(a, op);
  check_same_dtype(a, b, op);
  const bool vectors = is_vector_case(a, b);
  STRATA_CHECK(left || !vectors, op,
               ": Vector broadcasting of the left hand side is not supported for left=False. In this case "
               "linalg.solve is equivalent to B / A.squeeze(-1)");
  STRATA_CHECK(b.dim() >= 1, op, ": The input tensor B must have at least 1 dimension, got shape ", b.sizes());
  DimVec shape(b.sizes());
  if (vectors) shape.push_back(1);
  check_fit(a, shape, left, op);
  const DimVec batch = broadcast_shapes(batch_sizes(a.sizes()), batch_sizes(shape));
  const DimVec sizes = joined(batch, shape);
  // Rows of B, one after another in memory, are the columns of its transpose: X A = B is A^T X^T = B^T.
  Tensor x = left ? new_columns(a, sizes) : new_tensor(a, sizes);
  Factors f = factor_matrices(a, op);
  if (!a.is_meta()) {
    copy_values(x, vectors ? ops::unsqueeze(b, -1) : b);
    solve_factored(f, x, batch, left ? sizes.back() : sizes[sizes.size() - 2], left ? 'N' : 'T', op);
  }
  if (check_errors) check_info(f.info, op, singular_system);
  return {vectors ? x.alias(IntArrayRef(sizes.data(), sizes.size() - 1),
                            IntArrayRef(x.strides().data(), sizes.size() - 1), x.storage_offset())
                  : x,
          f.info};
}

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  auto [x, info] = ops::linalg_solve_ex(a, b, left, false);
  ops::_check_info(info, "linalg.solve", singular_system);
  return x;
}

Tensor linalg_solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  constexpr const char* op = "linalg.solve_triangular";
  check_square(a, op);
  STRATA_CHECK(b.dim() >= 2, op, ": The input tensor B must have at least 2 dimensions, got shape ", b.sizes());
  check_same_dtype(a, b, op);
  check_fit(a, b.sizes(), left, op);
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(a.dtype()), op, ": not implemented for '", scalar_type_name(a.dtype()),
                               "'; convert A and B to float32 or float64 with .to() first");
  check_lapack_dtype(a, op);
  const DimVec own = batch_sizes(a.sizes()), batch = broadcast_shapes(own, batch_sizes(b.sizes()));
  Tensor x = new_columns(b, joined(batch, b.sizes()));
  if (x.is_meta()) return x;
  copy_values(x, b);
  if (x.numel() == 0) return x;
  const StrataLapack& library = lapack(op);
  Tensor columns = columns_of(a);
  const int64_t m = b.size(-2), n = b.size(-1), order = a.size(-1);
  parallel_for(0, batch_count(x.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      lapack_done(library.triangular(lapack_type(a.dtype()), left, upper, unitriangular, m, n,
                                     matrix(columns, broadcast_index(i, batch, own)), order, matrix(x, i), m),
                  library, op);
  });
  return x;
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

std::tuple<Tensor, Tensor, Tensor> linalg_det_all(const Tensor& a) {
  constexpr const char* op = "linalg.det";
  check_square(a, op);
  check_dtype_unless_empty(a, op);
  Tensor result = new_tensor(a, batch_sizes(a.sizes()));
  Factors f = factor_matrices(for_determinant(a), op);
  if (a.is_meta()) return {result, f.lu, f.pivots};
  if (a.numel() == 0)
    fill_values(result, Scalar(1));
  else
    each_diagonal(f, [&](auto tag, int64_t b, const auto* diagonal, int64_t n, bool odd) {
      using T = typename decltype(tag)::type;
      result.data<T>()[b] = product_of(diagonal, n, odd);
    });
  return {result, f.lu, f.pivots};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_slogdet_all(const Tensor& a) {
  constexpr const char* op = "linalg.slogdet";
  check_square(a, op);
  check_precise_dtype(a, op);
  Tensor sign = new_tensor(a, batch_sizes(a.sizes()));
  Tensor magnitude = new_tensor(a, batch_sizes(a.sizes()), traits(a.dtype()).component);
  Factors f = factor_matrices(for_determinant(a), op);
  if (!a.is_meta())
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
  return {sign, magnitude, f.lu, f.pivots};
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

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& a, bool upper, bool check_errors) {
  constexpr const char* op = "linalg.cholesky";
  check_square(a, op);
  check_dtype_unless_empty(a, op);
  const int64_t n = a.size(-1), width = a.itemsize();
  Tensor info = new_tensor(a, batch_sizes(a.sizes()), DType::I32);
  if (a.is_meta()) return {new_columns(a, a.sizes()), info};
  Tensor factor = columns_of(a);
  fill_values(info, Scalar(0));
  if (a.numel() > 0) {
    const StrataLapack& library = lapack(op);
    parallel_for(0, batch_count(a.sizes()), 1, [&](int64_t begin, int64_t end) {
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
  return {factor, info};
}

Tensor linalg_cholesky(const Tensor& a, bool upper) {
  auto [factor, info] = ops::linalg_cholesky_ex(a, upper, false);
  ops::_check_info(info, "linalg.cholesky", not_positive);
  return factor;
}

}  // namespace strata::eager
