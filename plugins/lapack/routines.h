// LAPACK's and BLAS's Fortran routines under one name for the four types. Fortran passes everything by pointer, and the
// length of each string as a further argument at the end.
#pragma once
#include <complex>
#include <cstddef>

namespace strata::lapack {

using C64 = std::complex<float>;
using C128 = std::complex<double>;
using Length = size_t;
inline constexpr Length one = 1;

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;

// x: the type's letter; q: or, un (orthogonal, unitary).
#define STRATA_COMMON_ROUTINES(T, x, q)                                                                               \
  extern "C" {                                                                                                        \
  void x##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info);     \
  void x##q##gqr_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,              \
                  const int* lwork, int* info);                                                                       \
  void x##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, Length);                            \
  void x##getrf_(const int* m, const int* n, T* a, const int* lda, int* ipiv, int* info);                             \
  void x##getrs_(const char* trans, const int* n, const int* nrhs, const T* a, const int* lda, const int* ipiv, T* b, \
                 const int* ldb, int* info, Length);                                                                  \
  void x##trsm_(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n,  \
                const T* alpha, const T* a, const int* lda, T* b, const int* ldb, Length, Length, Length, Length);    \
  }                                                                                                                   \
  inline void geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork, int* info) {                             \
    x##geqrf_(&m, &n, a, &lda, tau, work, &lwork, info);                                                              \
  }                                                                                                                   \
  inline void gqr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork, int* info) {                  \
    x##q##gqr_(&m, &n, &k, a, &lda, tau, work, &lwork, info);                                                         \
  }                                                                                                                   \
  inline void potrf(char uplo, int n, T* a, int lda, int* info) { x##potrf_(&uplo, &n, a, &lda, info, one); }         \
  inline void getrf(int m, int n, T* a, int lda, int* ipiv, int* info) { x##getrf_(&m, &n, a, &lda, ipiv, info); }    \
  inline void getrs(char trans, int n, int nrhs, const T* a, int lda, const int* ipiv, T* b, int ldb, int* info) {    \
    x##getrs_(&trans, &n, &nrhs, a, &lda, ipiv, b, &ldb, info, one);                                                  \
  }                                                                                                                   \
  inline void trsm(char side, char uplo, char diag, int m, int n, const T* a, int lda, T* b, int ldb) {               \
    const char plain = 'N';                                                                                           \
    const T alpha = 1;                                                                                                \
    x##trsm_(&side, &uplo, &plain, &diag, &m, &n, &alpha, a, &lda, b, &ldb, one, one, one, one);                      \
  }

STRATA_COMMON_ROUTINES(float, s, or)
STRATA_COMMON_ROUTINES(double, d, or)
STRATA_COMMON_ROUTINES(C64, c, un)
STRATA_COMMON_ROUTINES(C128, z, un)
#undef STRATA_COMMON_ROUTINES

// Factors L D L^T (y: sy) of symmetric matrices, L D L^H (he) of Hermitian ones.
#define STRATA_SYMMETRIC_ROUTINES(T, x, y)                                                                            \
  extern "C" {                                                                                                        \
  void x##y##trf_(const char* uplo, const int* n, T* a, const int* lda, int* ipiv, T* work, const int* lwork,         \
                  int* info, Length);                                                                                 \
  void x##y##trs_(const char* uplo, const int* n, const int* nrhs, const T* a, const int* lda, const int* ipiv, T* b, \
                  const int* ldb, int* info, Length);                                                                 \
  }                                                                                                                   \
  inline void y##trf(int n, T* a, int lda, int* ipiv, T* work, int lwork, int* info) {                                \
    const char lower = 'L';                                                                                           \
    x##y##trf_(&lower, &n, a, &lda, ipiv, work, &lwork, info, one);                                                   \
  }                                                                                                                   \
  inline void y##trs(int n, int nrhs, const T* a, int lda, const int* ipiv, T* b, int ldb, int* info) {               \
    const char lower = 'L';                                                                                           \
    x##y##trs_(&lower, &n, &nrhs, a, &lda, ipiv, b, &ldb, info, one);                                                 \
  }

STRATA_SYMMETRIC_ROUTINES(float, s, sy)
STRATA_SYMMETRIC_ROUTINES(double, d, sy)
STRATA_SYMMETRIC_ROUTINES(C64, c, sy)
STRATA_SYMMETRIC_ROUTINES(C128, z, sy)
STRATA_SYMMETRIC_ROUTINES(C64, c, he)
STRATA_SYMMETRIC_ROUTINES(C128, z, he)
#undef STRATA_SYMMETRIC_ROUTINES

// The complex ones take real memory (rwork) besides; the wrappers of both take it, so that callers look alike. eig()
// gets the real and imaginary parts of the values of a real matrix as w and wi.
#define STRATA_REAL_ROUTINES(T, x)                                                                                     \
  extern "C" {                                                                                                         \
  void x##gesdd_(const char* job, const int* m, const int* n, T* a, const int* lda, T* s, T* u, const int* ldu, T* vt, \
                 const int* ldvt, T* work, const int* lwork, int* iwork, int* info, Length);                           \
  void x##syevd_(const char* job, const char* uplo, const int* n, T* a, const int* lda, T* w, T* work,                 \
                 const int* lwork, int* iwork, const int* liwork, int* info, Length, Length);                          \
  void x##geev_(const char* jobvl, const char* jobvr, const int* n, T* a, const int* lda, T* wr, T* wi, T* vl,         \
                const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork, int* info, Length, Length);        \
  void x##gels_(const char* trans, const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b,            \
                const int* ldb, T* work, const int* lwork, int* info, Length);                                         \
  void x##gelsy_(const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, int* jpvt,   \
                 const T* rcond, int* rank, T* work, const int* lwork, int* info);                                     \
  void x##gelsd_(const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, T* s,        \
                 const T* rcond, int* rank, T* work, const int* lwork, int* iwork, int* info);                         \
  void x##gelss_(const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, T* s,        \
                 const T* rcond, int* rank, T* work, const int* lwork, int* info);                                     \
  }                                                                                                                    \
  inline void gesdd(char job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt, T* work, int lwork,   \
                    T*, int* iwork, int* info) {                                                                       \
    x##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, info, one);                           \
  }                                                                                                                    \
  inline void eigh(char job, char uplo, int n, T* a, int lda, T* w, T* work, int lwork, T*, int, int* iwork,           \
                   int liwork, int* info) {                                                                            \
    x##syevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, info, one, one);                              \
  }                                                                                                                    \
  inline void geev(char job, int n, T* a, int lda, T* w, T* wi, T* v, int ldv, T* work, int lwork, T*, int* info) {    \
    const char none = 'N';                                                                                             \
    x##geev_(&none, &job, &n, a, &lda, w, wi, nullptr, &ldv, v, &ldv, work, &lwork, info, one, one);                   \
  }                                                                                                                    \
  inline void gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* work, int lwork, int* info) {              \
    const char plain = 'N';                                                                                            \
    x##gels_(&plain, &m, &n, &nrhs, a, &lda, b, &ldb, work, &lwork, info, one);                                        \
  }                                                                                                                    \
  inline void gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt, T rcond, int* rank, T* work,      \
                    int lwork, T*, int* info) {                                                                        \
    x##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork, info);                                \
  }                                                                                                                    \
  inline void gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank, T* work,           \
                    int lwork, T*, int* iwork, int* info) {                                                            \
    x##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, iwork, info);                            \
  }                                                                                                                    \
  inline void gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank, T* work,           \
                    int lwork, T*, int* info) {                                                                        \
    x##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, info);                                   \
  }

#define STRATA_COMPLEX_ROUTINES(T, R, x)                                                                               \
  extern "C" {                                                                                                         \
  void x##gesdd_(const char* job, const int* m, const int* n, T* a, const int* lda, R* s, T* u, const int* ldu, T* vt, \
                 const int* ldvt, T* work, const int* lwork, R* rwork, int* iwork, int* info, Length);                 \
  void x##heevd_(const char* job, const char* uplo, const int* n, T* a, const int* lda, R* w, T* work,                 \
                 const int* lwork, R* rwork, const int* lrwork, int* iwork, const int* liwork, int* info, Length,      \
                 Length);                                                                                              \
  void x##geev_(const char* jobvl, const char* jobvr, const int* n, T* a, const int* lda, T* w, T* vl,                 \
                const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork, R* rwork, int* info, Length,       \
                Length);                                                                                               \
  void x##gels_(const char* trans, const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b,            \
                const int* ldb, T* work, const int* lwork, int* info, Length);                                         \
  void x##gelsy_(const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, int* jpvt,   \
                 const R* rcond, int* rank, T* work, const int* lwork, R* rwork, int* info);                           \
  void x##gelsd_(const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, R* s,        \
                 const R* rcond, int* rank, T* work, const int* lwork, R* rwork, int* iwork, int* info);               \
  void x##gelss_(const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b, const int* ldb, R* s,        \
                 const R* rcond, int* rank, T* work, const int* lwork, R* rwork, int* info);                           \
  }                                                                                                                    \
  inline void gesdd(char job, int m, int n, T* a, int lda, R* s, T* u, int ldu, T* vt, int ldvt, T* work, int lwork,   \
                    R* rwork, int* iwork, int* info) {                                                                 \
    x##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, info, one);                    \
  }                                                                                                                    \
  inline void eigh(char job, char uplo, int n, T* a, int lda, R* w, T* work, int lwork, R* rwork, int lrwork,          \
                   int* iwork, int liwork, int* info) {                                                                \
    x##heevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, one, one);              \
  }                                                                                                                    \
  inline void geev(char job, int n, T* a, int lda, T* w, T*, T* v, int ldv, T* work, int lwork, R* rwork, int* info) { \
    const char none = 'N';                                                                                             \
    x##geev_(&none, &job, &n, a, &lda, w, nullptr, &ldv, v, &ldv, work, &lwork, rwork, info, one, one);                \
  }                                                                                                                    \
  inline void gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* work, int lwork, int* info) {              \
    const char plain = 'N';                                                                                            \
    x##gels_(&plain, &m, &n, &nrhs, a, &lda, b, &ldb, work, &lwork, info, one);                                        \
  }                                                                                                                    \
  inline void gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt, R rcond, int* rank, T* work,      \
                    int lwork, R* rwork, int* info) {                                                                  \
    x##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork, rwork, info);                         \
  }                                                                                                                    \
  inline void gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R* s, R rcond, int* rank, T* work,           \
                    int lwork, R* rwork, int* iwork, int* info) {                                                      \
    x##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, rwork, iwork, info);                     \
  }                                                                                                                    \
  inline void gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R* s, R rcond, int* rank, T* work,           \
                    int lwork, R* rwork, int* info) {                                                                  \
    x##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, rwork, info);                            \
  }

STRATA_REAL_ROUTINES(float, s)
STRATA_REAL_ROUTINES(double, d)
STRATA_COMPLEX_ROUTINES(C64, float, c)
STRATA_COMPLEX_ROUTINES(C128, double, z)
#undef STRATA_REAL_ROUTINES
#undef STRATA_COMPLEX_ROUTINES

}  // namespace strata::lapack
