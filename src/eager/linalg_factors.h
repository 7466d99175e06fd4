// Factors P A = L U of batches of matrices, and the rules of shapes that equations with them share.
#pragma once
#include "eager/lapack_host.h"

namespace strata::eager {

// Column-major factors in their matrices' batch, pivots from 1, and LAPACK's verdict on each.
struct Factors {
  Tensor lu, pivots, info;
};

Factors factor_matrices(const Tensor& a, const char* op);
// x = op(A)^-1 x for every column-major matrix of x (with `columns` columns, in a batch that the factors' broadcasts
// to); transposed is 'N', 'T' or 'C'.
void solve_factored(const Factors& f, const Tensor& x, IntArrayRef batch, int64_t columns, char transposed,
                    const char* op);
// Which matrix of `own` serves matrix b of a batch that it is broadcast to.
int64_t broadcast_index(int64_t b, IntArrayRef batch, IntArrayRef own);

void check_same_dtype(const Tensor& a, const Tensor& b, const char* op);
// A X = B with left, or X A = B, for matrices of B's sizes.
void check_fit(const Tensor& a, IntArrayRef b, bool left, const char* op);
// A batch of matrices like those of `matrices`.
DimVec joined(DimVec batch, IntArrayRef matrices);

}  // namespace strata::eager
