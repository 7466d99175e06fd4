#include "grad/formulas_factor.h"

#include "grad/matrices.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/factor.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"

namespace strata::formulas {

namespace {

// X of X A = B for an upper triangular A's adjoint, and of A X = B for a unit lower triangular A's.
Tensor right_of_upper(const Tensor& u, const Tensor& b) {
  return ops::linalg_solve_triangular(adjoint(u), b, false, false, false);
}
Tensor left_of_lower(const Tensor& l, const Tensor& b) {
  return ops::linalg_solve_triangular(adjoint(l), b, true, true, true);
}
Tensor triangles_of(const Tensor& a, const Tensor& b) { return ops::tril(a, -1) + ops::triu(b); }

}  // namespace

// From dA = P (dL U + L dU): L^-1 P^H dA U^-1 = L^-1 dL + dU U^-1, whose lower and upper triangles are the two terms.
Tensor lu_factor_grad(const Tensor& grad, const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  auto [p, l, u] = ops::lu_unpack(lu, pivots, true, true);
  Tensor result;
  if (m <= n) {
    Tensor grad_l = ops::tril(ops::narrow(grad, -1, 0, k), -1), grad_u = ops::triu(ops::narrow(grad, -1, 0, k));
    Tensor square = ops::narrow(u, -1, 0, k), lower = product(adjoint(l), grad_l), rest;
    if (m < n) {
      Tensor grad_right = ops::narrow(grad, -1, k, n - k);
      lower = lower - product(grad_right, adjoint(ops::narrow(u, -1, k, n - k)));
      rest = left_of_lower(l, grad_right);
    }
    Tensor inner = triangles_of(lower, product(grad_u, adjoint(square)));
    result = left_of_lower(l, right_of_upper(square, inner));
    if (m < n) result = ops::cat({result, rest}, -1);
  } else {
    Tensor top = ops::narrow(grad, -2, 0, k), grad_below = ops::narrow(grad, -2, k, m - k);
    Tensor square = ops::narrow(l, -2, 0, k), below = ops::narrow(l, -2, k, m - k);
    Tensor upper = product(ops::triu(top), adjoint(u)) - product(adjoint(below), grad_below);
    Tensor inner = triangles_of(product(adjoint(square), ops::tril(top, -1)), upper);
    result = ops::cat({left_of_lower(square, right_of_upper(u, inner)), right_of_upper(u, grad_below)}, -2);
  }
  return product(p, result);
}

Tensor lu_unpack_grad(const Tensor& grad_l, const Tensor& grad_u, IntArrayRef sizes) {
  const Tensor& like = grad_l.defined() ? grad_l : grad_u;
  if (!like.defined()) return Tensor();
  const int64_t m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1], k = std::min(m, n);
  auto filled = [&](const Tensor& t, int64_t dim, int64_t length) {
    if (t.size(dim) == length) return t;
    DimVec rest(t.sizes());
    rest[rest.size() + dim] = length - k;
    return ops::cat({t, ops::new_zeros(t, rest)}, dim);
  };
  Tensor result;
  if (grad_l.defined()) result = filled(ops::tril(grad_l, -1), -1, n);
  if (grad_u.defined()) {
    Tensor upper = filled(ops::triu(grad_u), -2, m);
    result = result.defined() ? result + upper : upper;
  }
  return result;
}

std::tuple<Tensor, Tensor> lu_solve_grad(const Tensor& grad, const Tensor& lu, const Tensor& pivots,
                                         IntArrayRef b_sizes, const Tensor& x, bool left, bool adjoined,
                                         const BoolVec& wanted) {
  Tensor grad_b = ops::linalg_lu_solve(lu, pivots, grad, left, !adjoined), by_lu;
  if (wanted[0]) {
    Tensor by_a = left ? -product(grad_b, adjoint(x)) : -product(adjoint(x), grad_b);
    if (adjoined) by_a = adjoint(by_a);
    auto [p, l, u] = ops::lu_unpack(lu, pivots, true, true);
    Tensor rows = product(adjoint(p), by_a);
    by_lu = ops::sum_to_size(triangles_of(product(rows, adjoint(u)), product(adjoint(l), rows)), lu.sizes());
  }
  return {by_lu, wanted[1] ? ops::sum_to_size(grad_b, b_sizes) : Tensor()};
}

std::tuple<Tensor, Tensor> cholesky_solve_grad(const Tensor& grad, IntArrayRef b_sizes, const Tensor& factor,
                                               const Tensor& x, bool upper, const BoolVec& wanted) {
  Tensor grad_b = ops::cholesky_solve(grad, factor, upper), by_factor;
  if (wanted[1]) {
    Tensor by_a = product(grad_b, adjoint(x));
    by_a = by_a + adjoint(by_a);
    by_factor = ops::sum_to_size(upper ? -product(factor, by_a) : -product(by_a, factor), factor.sizes());
  }
  return {wanted[0] ? ops::sum_to_size(grad_b, b_sizes) : Tensor(), by_factor};
}

Tensor cholesky_inverse_grad(const Tensor& grad, const Tensor& factor, const Tensor& inverse, bool upper) {
  Tensor by_a = product(product(inverse, grad + adjoint(grad)), inverse);
  return upper ? -product(factor, by_a) : -product(by_a, factor);
}

// Golub, Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
// separate" (1973), 4.12.
Tensor pinv_grad(const Tensor& grad, const Tensor& inverse, const Tensor& a) {
  Tensor h = adjoint(inverse), g = adjoint(grad);
  Tensor left = product(product(g, inverse), h);   // G^H A+ A+^H
  Tensor right = product(h, product(inverse, g));  // A+^H A+ G^H
  Tensor result = left - product(a, product(inverse, left)) + right - product(product(right, inverse), a);
  return result - product(h, product(grad, h));
}

// X = A+ B, and the residuals are |A X - B|^2, where A X - B is orthogonal to what X can change.
std::tuple<Tensor, Tensor> lstsq_grad(const Grads& grads, const Tensor& a, const Tensor& b, const Tensor& solution,
                                      const BoolVec& wanted) {
  const bool vectors = a.dim() != b.dim();
  auto matrices = [&](const Tensor& t) { return vectors && t.defined() ? ops::unsqueeze(t, -1) : t; };
  const Tensor grad_x = matrices(grads[0]), &grad_squares = grads[1], x = matrices(solution), sides = matrices(b);
  Tensor by_a, by_b;
  if (grad_x.defined()) {
    Tensor inverse = ops::linalg_pinv(a, Tensor(), Tensor(), false);
    if (wanted[0]) by_a = pinv_grad(product(grad_x, adjoint(sides)), inverse, a);
    if (wanted[1]) by_b = product(adjoint(inverse), grad_x);
  }
  if (grad_squares.defined() && grad_squares.numel() > 0) {
    Tensor error = (product(a, x) - sides) * (ops::unsqueeze(grad_squares, -2) * Scalar(2));
    Tensor more = product(error, adjoint(x));
    by_a = by_a.defined() ? by_a + more : more;
    by_b = by_b.defined() ? by_b - error : -error;
  }
  if (by_b.defined() && vectors) by_b = ops::squeeze(by_b, -1);
  return {wanted[0] && by_a.defined() ? ops::sum_to_size(by_a, a.sizes()) : Tensor(),
          wanted[1] && by_b.defined() ? ops::sum_to_size(by_b, b.sizes()) : Tensor()};
}

// Boeddeker, Hanebrink, Drude, Heymann, Haeb-Umbach, "On the computation of complex-valued gradients with application
// to statistically optimum beamforming" (2017), 4.77, with vectors kept at length 1.
Tensor eig_grad(const Grads& grads, const Tensor& values, const Tensor& vectors, bool complex) {
  const Tensor &grad_values = grads[0], &grad_vectors = grads[1];
  Tensor h = adjoint(vectors), inner;
  if (grad_vectors.defined()) {
    Tensor by_v = product(h, grad_vectors), lengths = diagonal(by_v), phases = ops::imag(lengths);
    check_phases(phases, ops::zeros_like(phases), "linalg_eig_backward", "eigenvectors");
    inner = by_v - product(h, vectors * as_row(ops::real(lengths)));
    inner = inner / ops::_conjugate(gaps(values));
    inner = inner - as_diagonal(diagonal(inner));
    if (grad_values.defined()) inner = inner + as_diagonal(grad_values);
    inner = product(inner, h);
  } else {
    inner = as_column(grad_values) * h;
  }
  Tensor grad = std::get<0>(ops::linalg_solve_ex(h, inner, true, false));
  return complex ? grad : ops::real(grad);
}

}  // namespace strata::formulas
