// Products of Householder's reflections, from which Q of a decomposition is made.
#include "core/promote.h"
#include "run/copy.h"
#include "strata/generated/by_hand/decompose.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/factor.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"
#include "vendor/lapack_host.h"

namespace strata::eager {

void linalg_householder_product(const Tensor& q, const Tensor& input, const Tensor& tau) {
  copy_values(q, input);
  if (q.numel() == 0) return;
  constexpr const char* op = "linalg.householder_product";
  const int64_t m = input.size(-2), n = input.size(-1), k = tau.size(-1);
  const StrataLapack& library = lapack(op);
  const Tensor factors = as_contiguous(tau);
  parallel_for(0, batch_count(q.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      lapack_done(library.qr_form(lapack_type(q.dtype()), m, n, k, matrix(q, b), m, vector(factors, b)), library, op);
  });
}

void geqrf(const Tensor& factored, const Tensor& tau, const Tensor& a) {
  copy_values(factored, a);
  if (a.numel() == 0) return;
  constexpr const char* op = "geqrf";
  const int64_t m = a.size(-2), n = a.size(-1);
  const StrataLapack& library = lapack(op);
  parallel_for(0, batch_count(a.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      lapack_done(library.qr_factor(lapack_type(a.dtype()), m, n, matrix(factored, b), m, vector(tau, b)), library, op);
  });
}

Tensor ormqr(const Tensor& input, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
  constexpr const char* op = "ormqr";
  check_same_device(input, tau, op);
  shape::check_taus(geometry(input), geometry(tau), op);
  check_lapack_dtype(input, op);
  STRATA_CHECK(other.dim() == input.dim() && batch_sizes(other.sizes()) == batch_sizes(input.sizes()), op,
               ": Expected other to have input's number of dimensions and batch, got shapes ", other.sizes(), " and ",
               input.sizes());
  const int64_t m = input.size(-2), n = std::min(m, input.size(-1));
  STRATA_CHECK(other.size(left ? -2 : -1) == m, op, ": other.shape[", left ? -2 : -1,
               "] must be equal to input.shape[-2], got shapes ", other.sizes(), " and ", input.sizes());
  STRATA_CHECK(tau.size(-1) == n, op, ": tau.shape[-1] must be equal to min(other.shape[", left ? -2 : -1,
               "], input.shape[-1]), got ", tau.size(-1));
  STRATA_CHECK(other.dtype() == input.dtype(), op, ": Expected input and other to have the same dtype, but input has ",
               "dtype ", scalar_type_name(input.dtype()), " and other has dtype ", scalar_type_name(other.dtype()));
  // All m columns of Q: what stands in the last m - n of the reflections' tensor does not matter.
  Tensor vectors = ops::narrow(input, -1, 0, n);
  if (n < m) vectors = ops::cat({vectors, ops::new_zeros(vectors, with_matrix(input.sizes(), m, m - n))}, -1);
  Tensor q = ops::linalg_householder_product(vectors, tau);
  if (transpose) q = ops::adjoint(q);
  // The transposed product, turned: columns one after another, as from LAPACK.
  Tensor turned = ops::transpose(other, -2, -1), q_turned = ops::transpose(q, -2, -1);
  return ops::transpose(left ? ops::matmul(turned, q_turned) : ops::matmul(q_turned, turned), -2, -1);
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool upper, bool transpose,
                                            bool unitriangular) {
  constexpr const char* op = "triangular_solve";
  STRATA_CHECK(b.dim() >= 2, op, ": Expected b to have at least 2 dimensions, but it has ", b.dim(),
               " dimensions instead");
  check_square(a, op);
  Tensor turned = ops::transpose(a, -2, -1);
  Tensor x = ops::linalg_solve_triangular(transpose ? turned : a, b, transpose ? !upper : upper, true, unitriangular);
  Tensor columns = ops::expand(turned, with_matrix(x.sizes(), a.size(-1), a.size(-1)));
  return {x, ops::transpose(ops::clone(columns, MemoryFormat::Contiguous), -2, -1)};
}

}  // namespace strata::eager
