// Rules of decompositions of matrices, the last two dims, and of equations with them. Results that LAPACK fills are
// column-major. `op` is PyTorch's name: "linalg.qr".
#pragma once
#include <optional>
#include <string_view>

#include "core/shape/prepared.h"

namespace strata::shape {

// ---- what they share

// Refuse what has no matrices, or no square ones.
template <class S>
void check_matrices(const Geometry<S>& a, const char* op);
template <class S>
void check_square(const Geometry<S>& a, const char* op);
// Refuse dtypes that LAPACK does not know. Half precision is NotImplemented, for some operators not for empty tensors,
// or for others a RuntimeError: as PyTorch has it.
template <class S>
void check_lapack_dtype(const Geometry<S>& a, const char* op);
template <class S>
void check_dtype_unless_empty(const Geometry<S>& a, const char* op);
template <class S>
void check_precise_dtype(const Geometry<S>& a, const char* op);

// A result whose matrices are column-major.
template <class S>
Strided<S> columns(Sizes<S> sizes, DType dtype);
// The sizes of a batch, and with a matrix or a vector for each of its members.
template <class S>
Sizes<S> batch_of(ArrayRef<S> sizes);
template <class S>
Sizes<S> with_matrix(ArrayRef<S> sizes, const S& rows, const S& columns);
template <class S>
Sizes<S> with_vector(ArrayRef<S> sizes, const S& length);

// Of A and B in A X = B with left, or X A = B.
template <class S>
void check_same_dtype(const Geometry<S>& a, const Geometry<S>& b, const char* op);
template <class S>
void check_fit(const Geometry<S>& a, ArrayRef<S> b, bool left, const char* op);
// Whether B of a system is a vector, or a batch of them.
template <class S>
bool is_vector_case(const Geometry<S>& a, const Geometry<S>& b);

// ---- rules

// No results: of what refuses a verdict.
template <class S>
Prepared<S> verdicts(const Geometry<S>& info);
template <class S>
Prepared<S> qr(const Geometry<S>& a, std::string_view mode);
template <class S>
Prepared<S> svd(const Geometry<S>& a, bool full_matrices, bool compute_uv, std::optional<std::string_view> driver);
template <class S>
Prepared<S> eigh(const Geometry<S>& a, std::string_view uplo, bool compute_v);
template <class S>
Prepared<S> eig(const char* op, const Geometry<S>& a, bool vectors);
template <class S>
Prepared<S> cholesky(const Geometry<S>& a);
template <class S>
Prepared<S> inverse(const Geometry<S>& a);
template <class S>
Prepared<S> determinant(const Geometry<S>& a);
template <class S>
Prepared<S> log_determinant(const Geometry<S>& a);
template <class S>
Prepared<S> solve(const Geometry<S>& a, const Geometry<S>& b, bool left);
template <class S>
Prepared<S> solve_triangular(const Geometry<S>& a, const Geometry<S>& b, bool left);
template <class S>
Prepared<S> lu_factor(const Geometry<S>& a, bool pivot);
template <class S>
Prepared<S> lu_solve(const Geometry<S>& lu, const Geometry<S>& pivots, const Geometry<S>& b, bool left);
template <class S>
Prepared<S> ldl_factor(const Geometry<S>& a);
template <class S>
Prepared<S> ldl_solve(const Geometry<S>& ld, const Geometry<S>& pivots, const Geometry<S>& b);
// The residuals are those of matrices of full rank, of which there are some.
template <class S>
Prepared<S> lstsq(const Geometry<S>& a, const Geometry<S>& b, std::optional<std::string_view> driver);
template <class S>
Prepared<S> householder_product(const Geometry<S>& input, const Geometry<S>& tau);
template <class S>
Prepared<S> geqrf(const Geometry<S>& a);

// Of the reflections that Q is made of, and their factors.
template <class S>
void check_taus(const Geometry<S>& input, const Geometry<S>& tau, const char* op);
template <class S>
void check_pivots(const Geometry<S>& lu, const Geometry<S>& pivots, const char* op);

}  // namespace strata::shape
