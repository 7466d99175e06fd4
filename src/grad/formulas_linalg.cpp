#include "grad/formulas_linalg.h"

namespace strata::formulas {

Tensor qr_grad(const Grads&) {
  throw_error(ErrorKind::NotImplemented,
              "linalg.qr: its derivative is not provided; decompose A.detach(), or orthogonalise with products");
}

}  // namespace strata::formulas
