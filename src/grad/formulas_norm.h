// Derivatives of softmax and of normalisations. Where second derivatives are asked for (create_graph), normalisations
// compose their gradients from operators; else one fused kernel makes them.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

using ThreeGrads = std::tuple<Tensor, Tensor, Tensor>;

Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output, int64_t dim);
Tensor log_softmax_grad_output(const Tensor& grad, const Tensor& output, int64_t dim);
Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output, int64_t dim);

ThreeGrads layer_norm_grad(const Grads& grads, const Tensor& input, IntArrayRef shape, const Tensor& weight,
                           const Tensor& bias, double eps, const Tensor& mean, const Tensor& rstd,
                           const BoolVec& wanted);
ThreeGrads group_norm_grad(const Grads& grads, const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                           int64_t c, int64_t positions, int64_t group, double eps, const Tensor& mean,
                           const Tensor& rstd, const BoolVec& wanted);
std::tuple<Tensor, Tensor> rms_norm_grad(const Grads& grads, const Tensor& input, IntArrayRef shape,
                                         const Tensor& weight, std::optional<double> eps, const Tensor& rstd,
                                         const BoolVec& wanted);
ThreeGrads batch_norm_grad(const Grads& grads, const Tensor& input, const Tensor& weight, const Tensor& bias,
                           const Tensor& running_mean, const Tensor& running_var, const Tensor& save_mean,
                           const Tensor& save_invstd, bool training, double eps, const BoolVec& wanted);

}  // namespace strata::formulas
