// Derivatives of decompositions, and of what has none.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

// Raises: the derivative needs triangular systems, which the table does not have.
[[noreturn]] Tensor qr_grad(const Grads& grads);

// Raises: PyTorch has none either.
[[noreturn]] std::tuple<Tensor, Tensor> no_nextafter_grad(const Tensor& grad);

}  // namespace strata::formulas
