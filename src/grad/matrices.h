// Short words for what derivatives of matrix functions are written in; for those sources alone.
#pragma once
#include "dispatch/tls.h"
#include "grad/formulas.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/close.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

inline Tensor adjoint(const Tensor& t) { return ops::_conjugate(ops::transpose(t, -2, -1)); }
inline Tensor product(const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }
inline Tensor diagonal(const Tensor& t) { return ops::diagonal(t, 0, -2, -1); }
inline Tensor as_diagonal(const Tensor& t) { return ops::diag_embed(t, 0, -2, -1); }
inline Tensor as_row(const Tensor& t) { return ops::unsqueeze(t, -2); }
inline Tensor as_column(const Tensor& t) { return ops::unsqueeze(t, -1); }

// values_j - values_i at (i, j), ones on the diagonal.
inline Tensor gaps(const Tensor& values) {
  return as_row(values) - as_column(values) + as_diagonal(ops::ones_like(values));
}

// Complex vectors have phases that the decomposition does not determine: a loss must not depend on them. `turns` is
// what it would change by, for which `op` raises unless it equals `expected`.
inline void check_phases(const Tensor& turns, const Tensor& expected, const char* op, const char* vectors) {
  if (turns.is_meta()) return;
  GradModeGuard unrecorded(false);
  STRATA_CHECK(ops::allclose(turns, expected, 1e-2, 1e-2), op, ": The ", vectors,
               " in the complex case are specified up to multiplication by e^{i phi}. The specified loss function "
               "depends on this quantity, so it is ill-defined.");
}

}  // namespace strata::formulas
