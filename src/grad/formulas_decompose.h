// Derivatives of decompositions and of what rests on them; sources of the formulas stand at the functions.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

Tensor qr_grad(const Grads& grads, const Tensor& q, const Tensor& r, std::string_view mode);
Tensor svd_grad(const Grads& grads, const Tensor& u, const Tensor& s, const Tensor& vh, bool compute_uv);
Tensor eigh_grad(const Grads& grads, const Tensor& values, const Tensor& vectors, bool compute_v);
Tensor cholesky_grad(const Tensor& grad, const Tensor& factor, bool upper);
Tensor inverse_grad(const Tensor& grad, const Tensor& inverse);
Tensor det_grad(const Tensor& grad, const Tensor& a, const Tensor& result);
Tensor slogdet_grad(const Grads& grads, const Tensor& a, const Tensor& sign);
std::tuple<Tensor, Tensor> solve_grad(const Tensor& grad, const Tensor& a, IntArrayRef b_sizes, const Tensor& x,
                                      bool left, const BoolVec& wanted);
std::tuple<Tensor, Tensor> triangular_grad(const Tensor& grad, const Tensor& a, IntArrayRef b_sizes, const Tensor& x,
                                           bool upper, bool left, bool unit, const BoolVec& wanted);

}  // namespace strata::formulas
