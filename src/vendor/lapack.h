/* The contract between the CPU core and an optional library of dense decompositions. The rules of library.h hold, and:
 *  - matrices are column-major: element (i, j) of one with leading dimension ld is at i + j * ld;
 *  - sizes are 0 or more, a leading dimension is at least 1 and the number of rows;
 *  - routines run on the calling thread alone, so that the bits of a result do not depend on the number of threads: the
 *    caller spreads batches over its own;
 *  - `info` receives LAPACK's own verdict on the values: 0, or a positive number that the routine explains. It is a
 *    result, not a failure: the status is OK.
 * This file is C11 and C++. */
#ifndef STRATA_EAGER_LAPACK_H
#define STRATA_EAGER_LAPACK_H

#include "vendor/library.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_LAPACK_MAJOR 1
#define STRATA_LAPACK_MINOR 0
#define STRATA_LAPACK_SYMBOL "strata_lapack_v1"

typedef enum StrataLapackType {
  STRATA_LAPACK_F32 = 0,
  STRATA_LAPACK_F64 = 1,
  STRATA_LAPACK_C64 = 2,
  STRATA_LAPACK_C128 = 3
} StrataLapackType;

typedef struct StrataLapack {
  uint32_t size;
  uint32_t major, minor;
  const char* name;    /* "OpenBLAS" */
  const char* version; /* "0.3.21", or "" if it cannot be asked */

  /* Reason of this thread's last status that was not OK; never null, valid until the thread's next call. */
  const char* (*last_error)(void);

  /* Householder's reflections of an m x n matrix in place: R above the diagonal, the vectors below, min(m, n) taus. */
  int (*qr_factor)(int dtype, int64_t m, int64_t n, void* a, int64_t lda, void* tau);
  /* The first n <= m columns of the product of k <= n reflections, in their place. */
  int (*qr_form)(int dtype, int64_t m, int64_t n, int64_t k, void* a, int64_t lda, const void* tau);

  /* Singular values, descending, real. vectors: 'N' none, 'S' min(m, n) of them, 'A' all. a is destroyed; vt holds the
   * right vectors' conjugate transpose. info > 0: did not converge. */
  int (*svd)(int dtype, char vectors, int64_t m, int64_t n, void* a, int64_t lda, void* s, void* u, int64_t ldu,
             void* vt, int64_t ldvt, int32_t* info);

  /* Eigenvalues, ascending, real, of the Hermitian matrix whose lower or upper triangle a holds; with vectors != 0 the
   * eigenvectors replace a, which is destroyed otherwise. info > 0: did not converge. */
  int (*eigh)(int dtype, int vectors, int upper, int64_t n, void* a, int64_t lda, void* w, int32_t* info);

  /* The factor of a positive definite matrix, in its triangle; the other one is not touched.
   * info > 0: the leading minor of this order is not positive. */
  int (*cholesky)(int dtype, int upper, int64_t n, void* a, int64_t lda, int32_t* info);

  /* P A = L U in place, pivots from 1. info > 0: this diagonal element of U is 0. */
  int (*lu_factor)(int dtype, int64_t m, int64_t n, void* a, int64_t lda, int32_t* pivots, int32_t* info);
  /* Solves op(A) X = B in place of B (n x columns) by these factors; transposed: 'N', 'T', 'C'. */
  int (*lu_solve)(int dtype, char transposed, int64_t n, int64_t columns, const void* lu, int64_t lda,
                  const int32_t* pivots, void* b, int64_t ldb);

  /* Solves A X = B (left) or X A = B in place of B (m x n) for a triangular A. unit: its diagonal is taken as ones. */
  int (*triangular)(int dtype, int left, int upper, int unit, int64_t m, int64_t n, const void* a, int64_t lda, void* b,
                    int64_t ldb);

  /* Eigenvalues and, with vectors != 0, eigenvectors of length 1 (n x n, v) of a, which is destroyed; w and v are
   * complex of a's precision for a real a, too. info > 0: did not converge. */
  int (*eig)(int dtype, int vectors, int64_t n, void* a, int64_t lda, void* w, void* v, int64_t ldv, int32_t* info);

  /* The X of least |A X - B|, in the first n rows of b (max(m, n) x columns); a (m x n) is destroyed. way: 'L' QR or LQ
   * of an A of full rank (info > 0: it has not), 'Y' QR with pivots, 'D' and 'S' singular values (divide and conquer,
   * QR), which go to s. Of the last three, X is the shortest one, what is below rcond times the largest counts as 0,
   * and *rank receives the rank. For m > n and full rank, rows n and on of b have the sums of squares of the residuals,
   * but not by 'Y'. */
  int (*least_squares)(int dtype, char way, int64_t m, int64_t n, int64_t columns, void* a, int64_t lda, void* b,
                       int64_t ldb, void* s, double rcond, int32_t* rank, int32_t* info);

  /* A = L D L^T, or L D L^H with hermitian, in the lower triangle, D of blocks of 1 and 2; pivots as LAPACK's sytrf has
   * them, negative for both rows of a block of 2. info > 0: this block of D is 0. */
  int (*ldl_factor)(int dtype, int hermitian, int64_t n, void* a, int64_t lda, int32_t* pivots, int32_t* info);
  /* Solves A X = B in place of B (n x columns) by these factors. */
  int (*ldl_solve)(int dtype, int hermitian, int64_t n, int64_t columns, const void* ld, int64_t lda,
                   const int32_t* pivots, void* b, int64_t ldb);
} StrataLapack;

/* The one symbol: const StrataLapack* strata_lapack_v1(void). Null if the library cannot run on this machine. */
typedef const StrataLapack* (*StrataLapackEntry)(void);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_EAGER_LAPACK_H */
