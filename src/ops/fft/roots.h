// Roots of 1 as products of two of few.
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

#include "core/math.h"

namespace strata::eager {

// exp(sign * 2 pi i m / n), m below `most`.
class Roots {
 public:
  Roots(int64_t n, int64_t most, int sign) {
    while (fine_count_ * fine_count_ < most) fine_count_ *= 2;
    const double angle = sign * 2 * 3.14159265358979323846 / double(n);
    fine_.resize(size_t(fine_count_));
    coarse_.resize(size_t(most / fine_count_ + 1));
    for (size_t i = 0; i < fine_.size(); ++i) fine_[i] = at(angle * double(i));
    for (size_t i = 0; i < coarse_.size(); ++i) coarse_[i] = at(angle * double(int64_t(i) * fine_count_));
  }
  std::complex<double> operator()(int64_t m) const {
    const std::complex<double> a = fine_[size_t(m & (fine_count_ - 1))], b = coarse_[size_t(m / fine_count_)];
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

 private:
  static std::complex<double> at(double angle) { return {math::cos(angle), math::sin(angle)}; }

  int64_t fine_count_ = 1;
  std::vector<std::complex<double>> fine_, coarse_;
};

}  // namespace strata::eager
