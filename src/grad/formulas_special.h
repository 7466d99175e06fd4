// Derivatives of special functions.
#pragma once
#include "core/tensor.h"

namespace strata::formulas {

Tensor i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor igamma_slope(const Tensor& self, const Tensor& other);  // of igamma by other

}  // namespace strata::formulas
