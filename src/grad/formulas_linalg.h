// Derivatives of decompositions and of ops/compose.yaml.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

// Raises: the derivative needs triangular systems, which the table does not have.
[[noreturn]] Tensor qr_grad(const Grads& grads);

// The gradient of `self` where it moves.
Tensor nextafter_grad(const Tensor& grad, const Tensor& self, const Tensor& other);

}  // namespace strata::formulas
