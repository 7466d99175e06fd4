// Derivatives of ops/compose.yaml.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

// The gradient of `self` where it moves.
Tensor nextafter_grad(const Tensor& grad, const Tensor& self, const Tensor& other);

}  // namespace strata::formulas
