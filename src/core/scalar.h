// Scalar: one number of Python's kinds (bool, int, float, complex), with the category that type promotion needs.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <ostream>

#include "base/error.h"
#include "core/dtype.h"

namespace strata {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };
  Scalar() : Scalar(0) {}
  Scalar(bool v) : kind_(Kind::Bool), i_(v) {}
  Scalar(int v) : kind_(Kind::Int), i_(v) {}
  Scalar(long v) : kind_(Kind::Int), i_(v) {}
  Scalar(long long v) : kind_(Kind::Int), i_(v) {}
  Scalar(float v) : kind_(Kind::Float), d_(v) {}
  Scalar(double v) : kind_(Kind::Float), d_(v) {}
  Scalar(std::complex<double> v) : kind_(Kind::Complex), d_(v.real()), imag_(v.imag()) {}
  // Values of 2^63 and above; printed and converted as unsigned.
  static Scalar from_u64(uint64_t v) {
    Scalar s(static_cast<long>(v));
    s.unsigned_ = v >> 63;
    return s;
  }

  Kind kind() const { return kind_; }
  bool is_integral(bool with_bool) const { return kind_ == Kind::Int || (with_bool && kind_ == Kind::Bool); }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_float() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  bool is_unsigned64() const { return unsigned_; }
  // The dtype by which it takes part in promotion.
  DType dtype() const {
    switch (kind_) {
      case Kind::Bool:
        return DType::Bool;
      case Kind::Int:
        return DType::I64;
      case Kind::Float:
        return default_dtype();
      default:
        return default_complex_dtype();
    }
  }
  double to_double() const {
    if (kind_ == Kind::Bool || kind_ == Kind::Int) return unsigned_ ? double(uint64_t(i_)) : double(i_);
    return d_;
  }
  // Truncates a float; a value out of range saturates and NaN gives 0, as in generated kernels.
  int64_t to_int() const {
    if (kind_ == Kind::Bool || kind_ == Kind::Int) return i_;
    if (std::isnan(d_)) return 0;
    if (d_ >= 0x1p63) return INT64_MAX;
    if (d_ < -0x1p63) return INT64_MIN;
    return static_cast<int64_t>(d_);
  }
  bool to_bool() const { return kind_ == Kind::Bool || kind_ == Kind::Int ? i_ != 0 : (d_ != 0 || imag_ != 0); }
  std::complex<double> to_complex() const {
    return kind_ == Kind::Complex ? std::complex<double>(d_, imag_) : std::complex<double>(to_double(), 0);
  }
  bool equals(double v) const { return kind_ != Kind::Complex ? to_double() == v : (d_ == v && imag_ == 0); }
  Scalar operator-() const {
    if (kind_ == Kind::Complex) return std::complex<double>(-d_, -imag_);
    if (kind_ == Kind::Float) return -d_;
    return static_cast<long>(0 - static_cast<uint64_t>(i_));
  }
  Scalar conj() const { return kind_ == Kind::Complex ? Scalar(std::complex<double>(d_, -imag_)) : *this; }

 private:
  Kind kind_;
  bool unsigned_ = false;
  int64_t i_ = 0;
  double d_ = 0, imag_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Scalar& s);

// Whether a number becomes an element of dtype t without overflow, by PyTorch's rule: fractions are cut off, negative
// integers may wrap to unsigned ones of their size, infinity and NaN fit floats, a complex number a real dtype only
// without an imaginary part, and everything fits bool.
bool fits(const Scalar& value, DType t);
[[noreturn]] void refuse_number(DType t);
// Raises where it does not fit.
inline void check_fits(const Scalar& value, DType t) {
  if (STRATA_UNLIKELY(!fits(value, t))) refuse_number(t);
}

}  // namespace strata
