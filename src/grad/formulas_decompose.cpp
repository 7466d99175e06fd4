#include "grad/formulas_decompose.h"

#include "grad/matrices.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"

namespace strata::formulas {

namespace {

Tensor sum_of(const Tensor& a, const Tensor& b) { return a.defined() ? a + b : b; }

// X - X^H with a diagonal of zeros.
Tensor skew(const Tensor& x) {
  Tensor s = x - adjoint(x);
  return x.is_complex() ? s - as_diagonal(diagonal(s)) : s;
}

Tensor imaginary_diagonal(const Tensor& x) { return ops::imag(diagonal(x)); }

}  // namespace

// Walter, Lehmann, "On evaluating higher-order derivatives of the QR decomposition of tall matrices with full column
// rank in forward and reverse mode algorithmic differentiation" (2010), and Roberts, Roberts, "QR and LQ decomposition
// matrix backpropagation algorithms for square, wide, and deep matrices" (2020).
Tensor qr_grad(const Grads& grads, const Tensor& q, const Tensor& r, std::string_view mode) {
  STRATA_CHECK(mode != "r",
               "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
               "mode='reduced') if you are going to differentiate through linalg.qr.");
  const int64_t m = q.size(-2), n = r.size(-1);
  STRATA_CHECK(mode != "complete" || m <= n,
               "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  Tensor grad_q = grads[0], grad_r = grads[1], triangle = r, rest;
  if (m < n) {
    // A = [X Y] = Q [R1 R2]: Y = Q R2 has its gradient by R2, and adds to that of Q.
    triangle = ops::narrow(r, -1, 0, m);
    if (grad_r.defined()) {
      Tensor grad_right = ops::narrow(grad_r, -1, m, n - m), right = ops::narrow(r, -1, m, n - m);
      rest = product(q, grad_right);
      grad_q = sum_of(grad_q, product(product(q, right), adjoint(grad_right)));
      grad_r = ops::narrow(grad_r, -1, 0, m);
    } else {
      rest = ops::zeros_like(ops::narrow(r, -1, m, n - m));
    }
  }
  Tensor inner;
  if (grad_r.defined()) inner = product(grad_r, adjoint(triangle));
  if (grad_q.defined()) inner = sum_of(inner, -product(adjoint(q), grad_q));
  // The adjoint of X -> triu(X + X^H) with half of the diagonal.
  Tensor upper = ops::triu(inner) - as_diagonal(diagonal(inner)) * Scalar(0.5);
  Tensor left = product(q, upper + adjoint(upper));
  if (grad_q.defined()) left = grad_q + left;
  Tensor grad = ops::linalg_solve_triangular(adjoint(triangle), left, false, false, false);
  return m < n ? ops::cat({grad, rest}, -1) : grad;
}

// Townsend, "Differentiating the singular value decomposition" (2016), with the phases of complex vectors.
Tensor svd_grad(const Grads& grads, const Tensor& u_all, const Tensor& s, const Tensor& vh_all, bool compute_uv) {
  STRATA_CHECK(compute_uv,
               "svd_backward: the derivative needs the singular vectors, which compute_uv=False leaves out; use "
               "linalg.svdvals, or compute_uv=True");
  const int64_t k = s.size(-1);
  auto columns = [&](const Tensor& t) { return t.defined() && t.size(-1) > k ? ops::narrow(t, -1, 0, k) : t; };
  auto rows = [&](const Tensor& t) { return t.defined() && t.size(-2) > k ? ops::narrow(t, -2, 0, k) : t; };
  const Tensor u = columns(u_all), vh = rows(vh_all), grad_u = columns(grads[0]), grad_vh = rows(grads[2]);
  const Tensor& grad_s = grads[1];
  const int64_t m = u.size(-2), n = vh.size(-1);
  if (!grad_u.defined() && !grad_vh.defined())
    return m >= n ? product(u, as_column(grad_s) * vh) : product(u * as_row(grad_s), vh);
  Tensor by_u = grad_u.defined() ? product(adjoint(u), grad_u) : Tensor();
  Tensor by_v = grad_vh.defined() ? product(vh, adjoint(grad_vh)) : Tensor();
  if (u.is_complex()) {
    Tensor left = by_u.defined() ? imaginary_diagonal(by_u) : ops::zeros_like(s);
    Tensor right = by_v.defined() ? imaginary_diagonal(by_v) : ops::zeros_like(s);
    check_phases(left, -right, "svd_backward", "singular vectors");
  }
  Tensor squares = gaps(s * s), inner;
  if (by_u.defined()) inner = skew(by_u) / squares * as_row(s);
  if (by_v.defined()) inner = sum_of(inner, as_column(s) * (skew(by_v) / squares));
  if (grad_s.defined()) inner = inner + as_diagonal(grad_s);
  if (by_u.defined() && u.is_complex()) {
    Tensor phases = imaginary_diagonal(by_u) / s;
    inner = inner + as_diagonal(ops::complex(ops::zeros_like(phases), phases));
  }
  Tensor grad = product(u, inner);
  if (by_u.defined() && m > k) grad = grad + (grad_u - product(u, by_u)) / as_row(s);
  grad = product(grad, vh);
  if (by_v.defined() && n > k) grad = grad + product(u / as_row(s), grad_vh - product(adjoint(by_v), vh));
  return grad;
}

// Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
// differentiation" (2008), 3.1, projected to Hermitian matrices.
Tensor eigh_grad(const Grads& grads, const Tensor& values, const Tensor& vectors, bool compute_v) {
  STRATA_CHECK(compute_v, "linalg_eigh_backward: the derivative needs the eigenvectors; use linalg.eigvalsh");
  const Tensor &grad_values = grads[0], &grad_vectors = grads[1];
  if (!grad_vectors.defined()) return product(vectors * as_row(grad_values), adjoint(vectors));
  Tensor by_v = product(adjoint(vectors), grad_vectors);
  if (vectors.is_complex()) {
    Tensor phases = imaginary_diagonal(by_v);
    check_phases(phases, ops::zeros_like(phases), "linalg_eigh_backward", "eigenvectors");
  }
  Tensor inner = skew(by_v) * Scalar(0.5) / gaps(values);
  if (grad_values.defined()) inner = inner + as_diagonal(grad_values);
  return product(product(vectors, inner), adjoint(vectors));
}

// Murray, "Differentiation of the Cholesky decomposition" (2016).
Tensor cholesky_grad(const Tensor& grad, const Tensor& factor, bool upper) {
  Tensor l = upper ? adjoint(factor) : factor, g = upper ? adjoint(grad) : grad, lh = adjoint(l);
  Tensor lower = ops::tril(product(lh, g));
  Tensor inner = (lower + adjoint(ops::tril(lower, -1))) * Scalar(0.5);
  Tensor half = ops::linalg_solve_triangular(lh, inner, true, true, false);
  return ops::linalg_solve_triangular(l, half, false, false, false);
}

Tensor inverse_grad(const Tensor& grad, const Tensor& inverse) {
  Tensor h = adjoint(inverse);
  return -product(h, product(grad, h));
}

namespace {

// The sizes of one vector per matrix.
DimVec rows_of(const Tensor& a) { return DimVec(IntArrayRef(a.sizes().data(), a.sizes().size() - 1)); }

Tensor solve(const Tensor& a, const Tensor& b) { return std::get<0>(ops::linalg_solve_ex(a, b, true, false)); }

// conj(det) A^-H by the cofactors, which exist where the inverse does not: A = U S Vh has those of U and Vh, whose
// determinants have magnitude 1, around the products of all singular values but one.
Tensor cofactors(const Tensor& a) {
  auto [u, s, vh] = ops::linalg_svd(a, true, std::nullopt);
  const int64_t n = s.size(-1);
  Tensor others = ops::masked_fill(ops::expand(as_row(s), a.sizes()), ops::eye(n, DType::Bool, a.device()), Scalar(1));
  Tensor phase = ops::_conjugate(ops::linalg_det(u) * ops::linalg_det(vh));
  return product(u * as_row(ops::prod(others, -1) * as_column(phase)), vh);
}

}  // namespace

Tensor det_grad(const Tensor& grad, const Tensor& a, const Tensor& result) {
  if (a.numel() == 0) return ops::zeros_like(a);
  Tensor scale = as_column(as_column(grad));
  bool singular = false;
  if (!a.is_meta()) {
    GradModeGuard unrecorded(false);
    singular = ops::any(ops::eq(result, Scalar(0))).data<bool>()[0];
  }
  if (singular) return scale * cofactors(a);
  Tensor d = grad * ops::_conjugate(result);
  Tensor diagonal = as_diagonal(ops::expand(as_column(d), rows_of(a)));
  return solve(adjoint(a), diagonal);
}

Tensor slogdet_grad(const Grads& grads, const Tensor& a, const Tensor& sign) {
  const Tensor &grad_sign = grads[0], &grad_log = grads[1];
  Tensor g = grad_log;
  if (a.is_complex()) {
    Tensor real = g.defined() ? g : ops::zeros_like(ops::real(sign));
    Tensor turn = grad_sign.defined() ? -ops::imag(ops::_conjugate(grad_sign) * sign) : ops::zeros_like(real);
    g = ops::complex(real, turn);
  }
  if (!g.defined() || a.numel() == 0) return ops::zeros_like(a);
  return solve(adjoint(a), as_diagonal(ops::expand(as_column(g), rows_of(a))));
}

namespace {

// The gradients of A and B of A X = B (left) or X A = B, from that of B alone.
std::tuple<Tensor, Tensor> by_system(const Tensor& grad_b, const Tensor& x, bool left, bool want_a) {
  if (!want_a) return {Tensor(), grad_b};
  return {left ? -product(grad_b, adjoint(x)) : -product(adjoint(x), grad_b), grad_b};
}

}  // namespace

std::tuple<Tensor, Tensor> solve_grad(const Tensor& grad, const Tensor& a, IntArrayRef b_sizes, const Tensor& x,
                                      bool left, const BoolVec& wanted) {
  if (!grad.defined()) return {};
  // As the forward: b is a vector, or a batch of them.
  const bool vectors = b_sizes.size() == 1 || b_sizes == IntArrayRef(a.sizes().data(), a.sizes().size() - 1);
  Tensor g = vectors ? as_column(grad) : grad, solution = vectors ? as_column(x) : x;
  Tensor grad_b = std::get<0>(ops::linalg_solve_ex(adjoint(a), g, left, false));
  auto [by_a, by_b] = by_system(grad_b, solution, left, wanted[0]);
  if (wanted[0]) by_a = ops::sum_to_size(by_a, a.sizes());
  if (!wanted[1]) return {by_a, Tensor()};
  return {by_a, ops::sum_to_size(vectors ? ops::squeeze(by_b, -1) : by_b, b_sizes)};
}

std::tuple<Tensor, Tensor> triangular_grad(const Tensor& grad, const Tensor& a, IntArrayRef b_sizes, const Tensor& x,
                                           bool upper, bool left, bool unit, const BoolVec& wanted) {
  if (!grad.defined()) return {};
  Tensor grad_b = ops::linalg_solve_triangular(adjoint(a), grad, !upper, left, unit);
  auto [by_a, by_b] = by_system(grad_b, x, left, wanted[0]);
  if (wanted[0]) {
    by_a = upper ? ops::triu(by_a, unit ? 1 : 0) : ops::tril(by_a, unit ? -1 : 0);
    by_a = ops::sum_to_size(by_a, a.sizes());
  }
  return {by_a, wanted[1] ? ops::sum_to_size(by_b, b_sizes) : Tensor()};
}

}  // namespace strata::formulas
