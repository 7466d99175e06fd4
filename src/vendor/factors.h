// Factors P A = L U of batches of matrices.
#pragma once
#include "vendor/lapack_host.h"

namespace strata::eager {

// Column-major factors in their matrices' batch, pivots from 1, and LAPACK's verdict on each.
struct Factors {
  Tensor lu, pivots, info;
};

Factors new_factors(const Tensor& a);
void factor_matrices(const Factors& f, const Tensor& a, const char* op);
// x = op(A)^-1 x for every column-major matrix of x (with `columns` columns, in a batch that the factors' broadcasts
// to); transposed is 'N', 'T' or 'C'.
void solve_factored(const Factors& f, const Tensor& x, IntArrayRef batch, int64_t columns, char transposed,
                    const char* op);
// Which matrix of `own` serves matrix b of a batch that it is broadcast to.
int64_t broadcast_index(int64_t b, IntArrayRef batch, IntArrayRef own);

}  // namespace strata::eager
