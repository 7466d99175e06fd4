// Derivatives of ops/factor.yaml.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

Tensor lu_factor_grad(const Tensor& grad, const Tensor& lu, const Tensor& pivots);
Tensor lu_unpack_grad(const Tensor& grad_l, const Tensor& grad_u, IntArrayRef sizes);
std::tuple<Tensor, Tensor> lu_solve_grad(const Tensor& grad, const Tensor& lu, const Tensor& pivots,
                                         IntArrayRef b_sizes, const Tensor& x, bool left, bool adjoined,
                                         const BoolVec& wanted);
std::tuple<Tensor, Tensor> cholesky_solve_grad(const Tensor& grad, IntArrayRef b_sizes, const Tensor& factor,
                                               const Tensor& x, bool upper, const BoolVec& wanted);
Tensor cholesky_inverse_grad(const Tensor& grad, const Tensor& factor, const Tensor& inverse, bool upper);
std::tuple<Tensor, Tensor> lstsq_grad(const Grads& grads, const Tensor& a, const Tensor& b, const Tensor& solution,
                                      const BoolVec& wanted);
Tensor eig_grad(const Grads& grads, const Tensor& values, const Tensor& vectors, bool complex);
std::tuple<Tensor, Tensor> householder_grad(const Tensor& grad, const Tensor& input, const Tensor& tau,
                                            const BoolVec& wanted);
[[noreturn]] Tensor no_derivative(const char* op);
[[noreturn]] std::tuple<Tensor, Tensor> no_derivatives(const char* op);
Tensor matrix_exp_grad(const Tensor& grad, const Tensor& a);
Tensor pinv_grad(const Tensor& grad, const Tensor& inverse, const Tensor& a);

}  // namespace strata::formulas
