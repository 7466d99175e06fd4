// Derivatives of decompositions.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

// Raises: the derivative needs triangular systems, which the table does not have.
[[noreturn]] Tensor qr_grad(const Grads& grads);

}  // namespace strata::formulas
