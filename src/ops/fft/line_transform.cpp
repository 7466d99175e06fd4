#include "ops/fft/line_transform.h"

#include <cstring>

namespace strata::eager {

template <class R>
LineTransform<R>::LineTransform(const StrataFourier& library, const LinesPass& p, int64_t count, const char* op)
    : length_(length_of(p)),
      count_(count),
      half_(p.kind == STRATA_FOURIER_HALF),
      in_parts_(kind_of(p) == STRATA_FOURIER_REAL   ? length_
                : kind_of(p) == STRATA_FOURIER_HALF ? length_ + 1
                                                    : 2 * length_),
      out_parts_(kind_of(p) == STRATA_FOURIER_REAL   ? length_ + 1
                 : kind_of(p) == STRATA_FOURIER_HALF ? length_
                                                     : 2 * length_),
      scale_(R(p.scale)),
      plan_(library, kind_of(p), p.precise, length_, count, op) {
  if (halved(p)) real_.emplace(p.length, half_, p.scale);
}

template <class R>
void LineTransform<R>::clear(R* in, int64_t parts, int64_t used) const {
  std::memset(in + used * parts, 0, size_t((count_ - used) * parts) * sizeof(R));
}

template <class R>
void LineTransform<R>::multiply(R* values, int64_t count) const {
  if (scale_ == R(1)) return;
  for (int64_t i = 0; i < count; ++i) values[i] *= scale_;
}

template <class R>
void LineTransform<R>::operator()(char* in, char* out, char* own, int64_t used) const {
  using Complex = std::complex<R>;
  auto *x = reinterpret_cast<R*>(in), *y = reinterpret_cast<R*>(out);
  if (real_) {
    auto* z = reinterpret_cast<Complex*>(own);
    if (half_) {
      for (int64_t l = 0; l < used; ++l) (*real_)(reinterpret_cast<Complex*>(x) + l * (length_ + 1), z + l * length_);
      clear(reinterpret_cast<R*>(z), 2 * length_, used);
      plan_.run(z, y);
    } else {
      clear(x, 2 * length_, used);
      plan_.run(x, z);
      for (int64_t l = 0; l < used; ++l) (*real_)(z + l * length_, reinterpret_cast<Complex*>(y) + l * (length_ + 1));
    }
    return;
  }
  clear(x, in_parts_, used);
  // What has no partner counts by its real part alone. A half is scaled before, in what the library destroys.
  for (int64_t l = 0; half_ && l < used; ++l) {
    R* line = x + l * in_parts_;
    line[1] = 0;
    multiply(line, in_parts_);
  }
  plan_.run(x, y);
  if (!half_) multiply(y, used * out_parts_);
}

template class LineTransform<float>;
template class LineTransform<double>;

}  // namespace strata::eager
