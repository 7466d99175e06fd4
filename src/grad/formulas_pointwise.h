// Derivatives of pointwise operators that compose tensors.
#pragma once
#include "core/tensor.h"

namespace strata::formulas {

Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor angle_backward(const Tensor& grad, const Tensor& self);
Tensor acosh_backward(const Tensor& grad, const Tensor& self);
Tensor logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps);
Tensor pow_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent);
Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result);
Tensor pow_backward_base(const Tensor& grad, const Scalar& base, const Tensor& exponent, const Tensor& result);
Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max);
Tensor mish_grad(const Tensor& grad, const Tensor& self);
Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate);

}  // namespace strata::formulas
