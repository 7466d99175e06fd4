#include <vector>

#include "grad/matrices.h"
#include "strata/generated/ops/factor.h"
#include "strata/generated/ops/shape.h"

namespace strata::formulas {

// With Q_k the unit columns and Q_i = Q_{i+1} - tau_i v_i (v_i^H Q_{i+1}): the reverse sweep over these steps.
std::tuple<Tensor, Tensor> householder_grad(const Tensor& grad, const Tensor& input, const Tensor& tau,
                                            const BoolVec& wanted) {
  const int64_t m = input.size(-2), n = input.size(-1), k = tau.size(-1);
  Tensor unit = ops::eye(m, n, input.dtype(), input.device());
  Tensor vectors = ops::tril(ops::narrow(input, -1, 0, k), -1) + ops::narrow(unit, -1, 0, k);
  auto vector = [&](int64_t i) { return ops::narrow(vectors, -1, i, 1); };
  auto factor = [&](int64_t i) { return ops::unsqueeze(ops::narrow(tau, -1, i, 1), -1); };
  std::vector<Tensor> q(k + 1);
  q[k] = ops::expand(unit, input.sizes());
  for (int64_t i = k; i-- > 0;) q[i] = q[i + 1] - vector(i) * factor(i) * product(adjoint(vector(i)), q[i + 1]);
  std::vector<Tensor> by_vectors, by_taus;
  Tensor g = grad;
  for (int64_t i = 0; i < k; ++i) {
    const Tensor v = vector(i), t = factor(i), &before = q[i + 1];
    Tensor row = product(adjoint(v), before), grad_row = product(adjoint(v), g);
    by_taus.push_back(ops::squeeze(-product(grad_row, adjoint(row)), -1));
    by_vectors.push_back(-(ops::_conjugate(t) * product(g, adjoint(row))) - t * product(before, adjoint(grad_row)));
    g = g - ops::_conjugate(t) * v * grad_row;
  }
  if (k == 0) return {wanted[0] ? ops::zeros_like(input) : Tensor(), wanted[1] ? ops::zeros_like(tau) : Tensor()};
  Tensor by_input;
  if (wanted[0]) {
    if (k < n) by_vectors.push_back(ops::zeros_like(ops::narrow(input, -1, k, n - k)));
    by_input = ops::tril(ops::cat(by_vectors, -1), -1);
  }
  return {by_input, wanted[1] ? ops::cat(by_taus, -1) : Tensor()};
}

std::tuple<Tensor, Tensor> no_derivatives(const char* op) {
  throw_error(ErrorKind::NotImplemented,
              str_cat("the derivative for '", op,
                      "' is not implemented; linalg.qr, linalg.lu_factor and linalg.solve have theirs"));
}
Tensor no_derivative(const char* op) { no_derivatives(op); }

// exp of [[A^H, G], [0, A^H]] has the adjoint of the derivative, applied to G, in its upper right corner (Mathias, "A
// chain rule for matrix functions and applications", 1996).
Tensor matrix_exp_grad(const Tensor& grad, const Tensor& a) {
  const int64_t n = a.size(-1);
  Tensor h = adjoint(a);
  Tensor upper = ops::cat({h, grad}, -1), lower = ops::cat({ops::zeros_like(h), h}, -1);
  Tensor whole = ops::linalg_matrix_exp(ops::cat({upper, lower}, -2));
  return ops::narrow(ops::narrow(whole, -2, 0, n), -1, n, n);
}

}  // namespace strata::formulas
