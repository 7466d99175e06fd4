// The C table of src/vendor/lapack.h over LAPACK: memory that the routines ask for, and their complaints as status
// codes.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "routines.h"
#include "small.h"
#include "vendor/lapack.h"

// OpenBLAS's own; a plain LAPACK has neither.
extern "C" __attribute__((weak)) void openblas_set_num_threads(int);
extern "C" __attribute__((weak)) int openblas_get_parallel(void);
extern "C" __attribute__((weak)) char* openblas_get_config(void);

namespace strata::lapack {
namespace {

thread_local char error_text[256];

int fail(StrataLibraryStatus status, const char* where, const char* reason) noexcept {
  std::snprintf(error_text, sizeof error_text, "%s: %s", where, reason);
  return status;
}

const char* last_error() { return error_text; }

struct Invalid {
  std::string reason;
};

// LAPACK counts in 32 bits.
int narrow(int64_t n) {
  if (n < 0 || n > INT_MAX) throw Invalid{"a size of " + std::to_string(n) + "; sizes go from 0 to 2^31 - 1"};
  return int(n);
}

// The size of work memory that a routine answers in its own type: single precision cannot hold every number, so the
// answer is rounded up.
template <class T>
int work_size(T answer) {
  double size;
  if constexpr (std::is_floating_point_v<T>)
    size = double(std::nextafter(answer, std::numeric_limits<T>::infinity()));
  else
    size = double(std::nextafter(answer.real(), std::numeric_limits<Real<T>>::infinity()));
  return std::max(1, narrow(int64_t(std::ceil(size))));
}

void accept(int info) {
  if (info < 0) throw Invalid{"argument " + std::to_string(-info) + " has an illegal value"};
}

// body(T*) with a null pointer of the dtype's C++ type.
template <class Body>
int guarded(const char* where, int dtype, Body&& body) noexcept {
  try {
    switch (dtype) {
      case STRATA_LAPACK_F32:
        body(static_cast<float*>(nullptr));
        return STRATA_LIBRARY_OK;
      case STRATA_LAPACK_F64:
        body(static_cast<double*>(nullptr));
        return STRATA_LIBRARY_OK;
      case STRATA_LAPACK_C64:
        body(static_cast<C64*>(nullptr));
        return STRATA_LIBRARY_OK;
      case STRATA_LAPACK_C128:
        body(static_cast<C128*>(nullptr));
        return STRATA_LIBRARY_OK;
    }
    return fail(STRATA_LIBRARY_INVALID, where, "an unknown dtype");
  } catch (const Invalid& e) {
    return fail(STRATA_LIBRARY_INVALID, where, e.reason.c_str());
  } catch (const std::bad_alloc&) {
    return fail(STRATA_LIBRARY_MEMORY, where, "out of memory");
  } catch (...) {
    return fail(STRATA_LIBRARY_FAILED, where, "unknown exception");
  }
}

int qr_factor(int dtype, int64_t m, int64_t n, void* a, int64_t lda, void* tau) {
  return guarded("qr_factor", dtype, [&]<class T>(T*) {
    int info = 0;
    T answer = 0;
    geqrf(narrow(m), narrow(n), static_cast<T*>(a), narrow(lda), static_cast<T*>(tau), &answer, -1, &info);
    std::vector<T> work(work_size(answer));
    geqrf(int(m), int(n), static_cast<T*>(a), int(lda), static_cast<T*>(tau), work.data(), int(work.size()), &info);
    accept(info);
  });
}

int qr_form(int dtype, int64_t m, int64_t n, int64_t k, void* a, int64_t lda, const void* tau) {
  return guarded("qr_form", dtype, [&]<class T>(T*) {
    int info = 0;
    T answer = 0;
    auto* t = static_cast<const T*>(tau);
    gqr(narrow(m), narrow(n), narrow(k), static_cast<T*>(a), narrow(lda), t, &answer, -1, &info);
    std::vector<T> work(work_size(answer));
    gqr(int(m), int(n), int(k), static_cast<T*>(a), int(lda), t, work.data(), int(work.size()), &info);
    accept(info);
  });
}

int svd(int dtype, char vectors, int64_t m, int64_t n, void* a, int64_t lda, void* s, void* u, int64_t ldu, void* vt,
        int64_t ldvt, int32_t* info) {
  return guarded("svd", dtype, [&]<class T>(T*) {
    const int64_t less = std::min(m, n), more = std::max(m, n);
    // What the documentation of cgesdd asks for; the real routines need none.
    int64_t real = sizeof(T) == sizeof(Real<T>) ? 0
                   : vectors == 'N'             ? 7 * less
                                    : std::max(5 * less * less + 5 * less, 2 * more * less + 2 * less * less + less);
    std::vector<Real<T>> rwork(std::max(1, narrow(real)));
    std::vector<int> iwork(std::max(1, narrow(8 * less)));
    T answer = 0;
    auto call = [&](T* work, int lwork) {
      gesdd(vectors, narrow(m), narrow(n), static_cast<T*>(a), narrow(lda), static_cast<Real<T>*>(s),
            static_cast<T*>(u), narrow(ldu), static_cast<T*>(vt), narrow(ldvt), work, lwork, rwork.data(), iwork.data(),
            info);
    };
    call(&answer, -1);
    std::vector<T> work(work_size(answer));
    call(work.data(), int(work.size()));
    accept(*info);
  });
}

int hermitian(int dtype, int vectors, int upper, int64_t n, void* a, int64_t lda, void* w, int32_t* info) {
  return guarded("eigh", dtype, [&]<class T>(T*) {
    T answer = 0;
    Real<T> real = 0;
    int ints = 0;
    auto call = [&](T* work, int lwork, Real<T>* rwork, int lrwork, int* iwork, int liwork) {
      eigh(vectors ? 'V' : 'N', upper ? 'U' : 'L', narrow(n), static_cast<T*>(a), narrow(lda), static_cast<Real<T>*>(w),
           work, lwork, rwork, lrwork, iwork, liwork, info);
    };
    call(&answer, -1, &real, -1, &ints, -1);
    std::vector<T> work(work_size(answer));
    std::vector<Real<T>> rwork(work_size(real));
    std::vector<int> iwork(std::max(1, ints));
    call(work.data(), int(work.size()), rwork.data(), int(rwork.size()), iwork.data(), int(iwork.size()));
    accept(*info);
  });
}

int cholesky(int dtype, int upper, int64_t n, void* a, int64_t lda, int32_t* info) {
  return guarded("cholesky", dtype, [&]<class T>(T*) {
    T* columns = static_cast<T*>(a);
    if (n <= kSmall) {
      const View<T> view{columns, 1, lda};
      return small_cholesky(n, upper ? view.transposed() : view, info);
    }
    potrf(upper ? 'U' : 'L', narrow(n), columns, narrow(lda), info);
    accept(*info);
    // LAPACK stops at a NaN, OpenBLAS's own version of it goes on.
    for (int64_t j = 0; j < n && *info == 0; ++j)
      if (std::isnan(std::real(columns[j * (lda + 1)]))) *info = int32_t(j + 1);
  });
}

int lu_factor(int dtype, int64_t m, int64_t n, void* a, int64_t lda, int32_t* pivots, int32_t* info) {
  return guarded("lu_factor", dtype, [&]<class T>(T*) {
    if (m <= kSmall && n <= kSmall) {
      const View<T> view{static_cast<T*>(a), 1, lda};
      if (m != n) return small_lu(m, n, view, pivots, info);
      return with_order(n, [&](auto order) { small_lu(order, order, view, pivots, info); });
    }
    getrf(narrow(m), narrow(n), static_cast<T*>(a), narrow(lda), pivots, info);
    accept(*info);
  });
}

int lu_solve(int dtype, char transposed, int64_t n, int64_t columns, const void* lu, int64_t lda, const int32_t* pivots,
             void* b, int64_t ldb) {
  return guarded("lu_solve", dtype, [&]<class T>(T*) {
    if (n <= kSmall && columns <= kFewColumns)
      return with_order(n, [&](auto order) {
        small_lu_solve(transposed, order, columns, View<const T>{static_cast<const T*>(lu), 1, lda}, pivots,
                       View<T>{static_cast<T*>(b), 1, ldb});
      });
    int info = 0;
    getrs(transposed, narrow(n), narrow(columns), static_cast<const T*>(lu), narrow(lda), pivots, static_cast<T*>(b),
          narrow(ldb), &info);
    accept(info);
  });
}

int triangular(int dtype, int left, int upper, int unit, int64_t m, int64_t n, const void* a, int64_t lda, void* b,
               int64_t ldb) {
  return guarded("triangular", dtype, [&]<class T>(T*) {
    const int64_t order = left ? m : n, columns = left ? n : m;
    if (order <= kSmall && columns <= kFewColumns) {
      const View<const T> factor{static_cast<const T*>(a), 1, lda};
      const View<T> sides{static_cast<T*>(b), 1, ldb};
      if (left) return small_substitute(upper != 0, unit != 0, false, order, columns, factor, sides);
      return small_substitute(upper == 0, unit != 0, false, order, columns, factor.transposed(), sides.transposed());
    }
    trsm(left ? 'L' : 'R', upper ? 'U' : 'L', unit ? 'U' : 'N', narrow(m), narrow(n), static_cast<const T*>(a),
         narrow(lda), static_cast<T*>(b), narrow(ldb));
  });
}

// A real matrix's eigenvalues come as two lists of parts; the vectors of a pair of conjugates as real and imaginary
// part.
template <class R>
void join_parts(int n, const R* re, const R* im, const R* parts, std::complex<R>* w, std::complex<R>* v, int64_t ldv) {
  for (int j = 0; j < n; ++j) w[j] = {re[j], im[j]};
  for (int j = 0; v && j < n; ++j) {
    const bool pair = im[j] != 0 && j + 1 < n;
    for (int i = 0; i < n; ++i) {
      const R first = parts[int64_t{j} * n + i], second = pair ? parts[(int64_t{j} + 1) * n + i] : R(0);
      v[j * ldv + i] = {first, second};
      if (pair) v[(j + 1) * ldv + i] = {first, -second};
    }
    j += pair;
  }
}

int eig(int dtype, int vectors, int64_t n, void* a, int64_t lda, void* w, void* v, int64_t ldv, int32_t* info) {
  return guarded("eig", dtype, [&]<class T>(T*) {
    using R = Real<T>;
    using C = std::complex<R>;
    constexpr bool real = std::is_floating_point_v<T>;
    const int size = narrow(n);
    std::vector<T> values(real ? 2 * n : 0), parts(real && vectors ? n * n : 0);
    std::vector<R> rwork(real ? 1 : std::max<int64_t>(1, 2 * n));
    T* w_of = real ? values.data() : static_cast<T*>(w);
    T* v_of = real ? parts.data() : static_cast<T*>(v);
    const int ld = real ? std::max(1, size) : narrow(ldv);
    T answer = 0;
    auto call = [&](T* work, int lwork) {
      geev(vectors ? 'V' : 'N', size, static_cast<T*>(a), narrow(lda), w_of, real ? w_of + n : nullptr, v_of, ld, work,
           lwork, rwork.data(), info);
    };
    call(&answer, -1);
    std::vector<T> work(work_size(answer));
    call(work.data(), int(work.size()));
    accept(*info);
    if constexpr (real)
      join_parts(size, w_of, w_of + n, v_of, static_cast<C*>(w), vectors ? static_cast<C*>(v) : nullptr, ldv);
  });
}

int least_squares(int dtype, char way, int64_t m, int64_t n, int64_t columns, void* a, int64_t lda, void* b,
                  int64_t ldb, void* s, double rcond, int32_t* rank, int32_t* info) {
  return guarded("least_squares", dtype, [&]<class T>(T*) {
    using R = Real<T>;
    const int rows = narrow(m), width = narrow(n), many = narrow(columns), ld_a = narrow(lda), ld_b = narrow(ldb);
    T *matrix = static_cast<T*>(a), *sides = static_cast<T*>(b);
    R* values = static_cast<R*>(s);
    std::vector<int> ints(std::max(1, width));  // gelsy's free columns
    std::vector<R> reals(std::max<int64_t>(1, way == 'Y' ? 2 * n : 5 * std::min(m, n)));
    auto call = [&](T* work, int lwork) {
      if (way == 'L') gels(rows, width, many, matrix, ld_a, sides, ld_b, work, lwork, info);
      if (way == 'Y')
        gelsy(rows, width, many, matrix, ld_a, sides, ld_b, ints.data(), R(rcond), rank, work, lwork, reals.data(),
              info);
      if (way == 'D')
        gelsd(rows, width, many, matrix, ld_a, sides, ld_b, values, R(rcond), rank, work, lwork, reals.data(),
              ints.data(), info);
      if (way == 'S')
        gelss(rows, width, many, matrix, ld_a, sides, ld_b, values, R(rcond), rank, work, lwork, reals.data(), info);
    };
    T answer = 0;
    call(&answer, -1);
    accept(*info);
    if (way == 'D') {  // it answers all three sizes
      const int more = std::max(1, ints[0]);
      const bool complex = !std::is_floating_point_v<T>;
      reals.resize(complex ? work_size(reals[0]) : 1);
      ints.assign(more, 0);
    }
    std::vector<T> work(work_size(answer));
    call(work.data(), int(work.size()));
    accept(*info);
  });
}

int ldl_factor(int dtype, int hermitian, int64_t n, void* a, int64_t lda, int32_t* pivots, int32_t* info) {
  return guarded("ldl_factor", dtype, [&]<class T>(T*) {
    auto call = [&](T* work, int lwork) {
      if constexpr (!std::is_floating_point_v<T>)
        if (hermitian) return hetrf(narrow(n), static_cast<T*>(a), narrow(lda), pivots, work, lwork, info);
      sytrf(narrow(n), static_cast<T*>(a), narrow(lda), pivots, work, lwork, info);
    };
    T answer = 0;
    call(&answer, -1);
    std::vector<T> work(work_size(answer));
    call(work.data(), int(work.size()));
    accept(*info);
  });
}

int ldl_solve(int dtype, int hermitian, int64_t n, int64_t columns, const void* ld, int64_t lda, const int32_t* pivots,
              void* b, int64_t ldb) {
  return guarded("ldl_solve", dtype, [&]<class T>(T*) {
    int info = 0;
    const T* factors = static_cast<const T*>(ld);
    bool done = false;
    if constexpr (!std::is_floating_point_v<T>)
      if (hermitian) {
        hetrs(narrow(n), narrow(columns), factors, narrow(lda), pivots, static_cast<T*>(b), narrow(ldb), &info);
        done = true;
      }
    if (!done) sytrs(narrow(n), narrow(columns), factors, narrow(lda), pivots, static_cast<T*>(b), narrow(ldb), &info);
    accept(info);
  });
}

// "OpenBLAS 0.3.21 NO_AFFINITY ..." has the version as its second word.
std::string version() {
  if (!openblas_get_config) return "";
  std::string config = openblas_get_config();
  size_t begin = config.find(' ');
  if (begin == config.npos) return "";
  size_t end = config.find(' ', begin + 1);
  return config.substr(begin + 1, end == config.npos ? end : end - begin - 1);
}

StrataLapack table() {
  static const std::string words = version();
  StrataLapack t{};
  t.size = sizeof(StrataLapack);
  t.major = STRATA_LAPACK_MAJOR;
  t.minor = STRATA_LAPACK_MINOR;
  t.name = "OpenBLAS";
  t.version = words.c_str();
  t.last_error = last_error;
  t.qr_factor = qr_factor;
  t.qr_form = qr_form;
  t.svd = svd;
  t.eigh = hermitian;
  t.cholesky = cholesky;
  t.lu_factor = lu_factor;
  t.lu_solve = lu_solve;
  t.triangular = triangular;
  t.eig = eig;
  t.least_squares = least_squares;
  t.ldl_factor = ldl_factor;
  t.ldl_solve = ldl_solve;
  return t;
}

}  // namespace
}  // namespace strata::lapack

extern "C" __attribute__((visibility("default"))) const StrataLapack* strata_lapack_v1(void) {
  try {
    // 1: its own threads. A build without locks may not be called from several threads, one over libgomp not forked.
    if (openblas_get_parallel && openblas_get_parallel() != 1) return nullptr;
    static const StrataLapack library = [] {
      if (openblas_set_num_threads) openblas_set_num_threads(1);
      return strata::lapack::table();
    }();
    return &library;
  } catch (...) {
    return nullptr;
  }
}
