// LAPACK's algorithms by plain loops, for matrices so small that a call of the library takes longer than the work: it
// locks a buffer and packs operands, 30 to 150 ns where a 3 x 3 matrix takes 10.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace strata::lapack {

// Sizes up to here go this way, with up to kFewColumns right-hand sides.
inline constexpr int64_t kSmall = 8, kFewColumns = 16;

// Elements (i, j) at data[i * row + j * column]; a transpose has the steps exchanged.
template <class T>
struct View {
  T* data;
  int64_t row, column;
  T& operator()(int64_t i, int64_t j) const { return data[i * row + j * column]; }
  View transposed() const { return {data, column, row}; }
};

// |re| + |im|, by which LAPACK chooses pivots.
template <class R>
R size_of(R x) {
  return std::abs(x);
}
template <class R>
R size_of(std::complex<R> x) {
  return std::abs(x.real()) + std::abs(x.imag());
}

template <class R>
R conjugate(R x) {
  return x;
}
template <class R>
std::complex<R> conjugate(std::complex<R> x) {
  return std::conj(x);
}

// body(n), for the commonest orders with a number that the compiler knows.
template <class Body>
void with_order(int64_t n, Body&& body) {
  if (n == 2) return body(std::integral_constant<int64_t, 2>());
  if (n == 3) return body(std::integral_constant<int64_t, 3>());
  if (n == 4) return body(std::integral_constant<int64_t, 4>());
  body(n);
}

// getrf: column after column, the first of the largest elements as pivot.
template <class T, class Order>
inline __attribute__((always_inline)) void small_lu(Order m, Order n, View<T> a, int32_t* pivots, int32_t* info) {
  *info = 0;
  for (int64_t j = 0; j < m && j < n; ++j) {
    int64_t p = j;
    for (int64_t i = j + 1; i < m; ++i)
      if (size_of(a(i, j)) > size_of(a(p, j))) p = i;
    pivots[j] = int32_t(p + 1);
    if (a(p, j) == T(0)) {
      if (*info == 0) *info = int32_t(j + 1);
      continue;
    }
    for (int64_t k = 0; p != j && k < n; ++k) std::swap(a(p, k), a(j, k));
    const T pivot = a(j, j);
    for (int64_t i = j + 1; i < m; ++i) a(i, j) /= pivot;
    for (int64_t k = j + 1; k < n; ++k) {
      const T top = a(j, k);
      for (int64_t i = j + 1; i < m; ++i) a(i, k) -= a(i, j) * top;
    }
  }
}

// B := A^-1 B for a lower triangular A, or, with upper, an upper one.
template <class T, class Order>
inline __attribute__((always_inline)) void small_substitute(bool upper, bool unit, bool conjugated, Order n,
                                                            int64_t columns, View<const T> a, View<T> b) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t s = 0; s < n; ++s) {
      const int64_t j = upper ? n - 1 - s : s;
      const auto element = [&](int64_t i) { return conjugated ? conjugate(a(i, j)) : a(i, j); };
      T x = b(j, c);
      if (!unit) b(j, c) = x /= element(j);
      for (int64_t i = upper ? 0 : j + 1, end = upper ? j : n; i < end; ++i) b(i, c) -= element(i) * x;
    }
}

// getrs.
template <class T, class Order>
inline __attribute__((always_inline)) void small_lu_solve(char transposed, Order n, int64_t columns, View<const T> lu,
                                                          const int32_t* pivots, View<T> b) {
  const auto exchange = [&](int64_t i) {
    for (int64_t c = 0; pivots[i] - 1 != i && c < columns; ++c) std::swap(b(i, c), b(pivots[i] - 1, c));
  };
  if (transposed == 'N') {
    for (int64_t i = 0; i < n; ++i) exchange(i);
    small_substitute(false, true, false, n, columns, lu, b);
    small_substitute(true, false, false, n, columns, lu, b);
  } else {
    small_substitute(false, false, transposed == 'C', n, columns, lu.transposed(), b);
    small_substitute(true, true, transposed == 'C', n, columns, lu.transposed(), b);
    for (int64_t i = n; i-- > 0;) exchange(i);
  }
}

// potrf of the lower triangle, which for the transpose of an upper one gives its factor's.
template <class T>
void small_cholesky(int64_t n, View<T> a, int32_t* info) {
  *info = 0;
  for (int64_t j = 0; j < n; ++j) {
    auto square = std::real(a(j, j));
    for (int64_t k = 0; k < j; ++k) square -= std::norm(a(j, k));
    a(j, j) = square;
    if (!(square > 0)) {  // a NaN, too
      *info = int32_t(j + 1);
      return;
    }
    const auto root = std::sqrt(square);
    a(j, j) = root;
    for (int64_t i = j + 1; i < n; ++i) {
      T x = a(i, j);
      for (int64_t k = 0; k < j; ++k) x -= a(i, k) * conjugate(a(j, k));
      a(i, j) = x / root;
    }
  }
}

}  // namespace strata::lapack
