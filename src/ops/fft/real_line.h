// Real lines of an even length n by complex ones of m = n / 2: elements 2j and 2j + 1 are taken as the parts of one
// number. Libraries transform complex lines by vectors, real ones mostly without.
//
// With Z the transform of these numbers, w = exp(-2 pi i / n), Z[m] = Z[0] and k up to m:
//   X[k] = (Z[k] + conj(Z[m - k])) / 2 - i w^k (Z[k] - conj(Z[m - k])) / 2
// is the transform of the line, and with k below m and w for 1 / w
//   Z[k] = X[k] + conj(X[m - k]) + i w^k (X[k] - conj(X[m - k]))
// leads back. (Sorensen, Jones, Heideman and Burrus, Real-valued fast Fourier transform algorithms, 1987.)
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace strata::eager {

template <class R>
class RealLine {
 public:
  // Results are multiplied by `scale`.
  RealLine(int64_t length, bool back, double scale);

  // m elements to m + 1, or back; the imaginary parts of what has no partner do not count then. `to` may be `from`.
  void operator()(const std::complex<R>* from, std::complex<R>* to) const;

 private:
  // Elements k from `begin` to `end`, at most (m + 1) / 2, and m - k.
  void pairs(const std::complex<R>* from, std::complex<R>* to, int64_t begin, int64_t end) const;

  int64_t m_;
  bool back_;
  R scale_;                             // of sums of two
  std::vector<std::complex<R>> turns_;  // of differences
};

}  // namespace strata::eager
