#include "grad/formulas_linalg.h"

namespace strata::formulas {

Tensor qr_grad(const Grads&) {
  throw_error(ErrorKind::NotImplemented,
              "linalg.qr: its derivative is not provided; decompose A.detach(), or orthogonalise with products");
}

std::tuple<Tensor, Tensor> no_nextafter_grad(const Tensor&) {
  throw_error(ErrorKind::NotImplemented,
              "the derivative for 'self' of nextafter is not implemented; detach() its operands");
}

}  // namespace strata::formulas
