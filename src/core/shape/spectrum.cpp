#include "core/shape/spectrum.h"

#include <algorithm>
#include <vector>

#include "core/promote.h"
#include "core/shape/index.h"

namespace strata::shape {
namespace {

template <class S>
S half_of(const S& n) {
  return n / S(2) + S(1);
}

template <class S>
void check_transform(const char* op, const Geometry<S>& self, IntArrayRef dim, int64_t normalization, bool halves) {
  STRATA_CHECK(!halves || !dim.empty(), op, ": dim: expected at least one dim to transform, got none");
  STRATA_CHECK(normalization >= 0 && normalization <= 2, op,
               ": normalization: expected 0 (none), 1 (by the root of the length) or 2 (by the length), got ",
               normalization);
  std::vector<bool> seen(size_t(std::max<int64_t>(self.dim(), 1)), false);
  for (int64_t d : dim) {
    STRATA_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
    const int64_t at = wrap_dim(d, self.dim());
    STRATA_CHECK(!seen[size_t(at)], "FFT dims must be unique");
    seen[size_t(at)] = true;
    STRATA_CHECK(self.sizes[size_t(at)] >= S(1), "Invalid number of data points (", self.sizes[size_t(at)],
                 ") specified");
  }
}

template <class S>
void check_complex(const char* op, const Geometry<S>& self) {
  STRATA_CHECK(is_complex(self.dtype), op, ": self: expected a complex tensor, got one of ",
               scalar_type_name(self.dtype), "; convert it with .to(), or call strata.fft");
}

}  // namespace

template <class S>
Prepared<S> complex_spectrum(const Geometry<S>& self, IntArrayRef dim, int64_t normalization) {
  check_complex("_fft_c2c", self);
  check_transform("_fft_c2c", self, dim, normalization, false);
  return {self.sizes, self.dtype};
}

template <class S>
Prepared<S> real_spectrum(const Geometry<S>& self, IntArrayRef dim, int64_t normalization, bool onesided) {
  STRATA_CHECK(self.dtype == DType::F32 || self.dtype == DType::F64,
               "_fft_r2c: self: expected float32 or float64, got ", scalar_type_name(self.dtype),
               "; convert it with .to()");
  check_transform("_fft_r2c", self, dim, normalization, true);
  Sizes<S> sizes(self.sizes);
  if (onesided) {
    S& last = sizes[size_t(wrap_dim(dim.back(), self.dim()))];
    last = half_of(last);
  }
  return {sizes, to_complex(self.dtype)};
}

template <class S>
Prepared<S> from_half_spectrum(const Geometry<S>& self, IntArrayRef dim, int64_t normalization,
                               const S& last_dim_size) {
  check_complex("_fft_c2r", self);
  check_transform("_fft_c2r", self, dim, normalization, true);
  STRATA_CHECK(last_dim_size >= S(1), "Invalid number of data points (", last_dim_size, ") specified");
  const int64_t last = wrap_dim(dim.back(), self.dim());
  STRATA_CHECK(self.sizes[size_t(last)] == half_of(last_dim_size), "_fft_c2r: last_dim_size: ", last_dim_size,
               " real values have ", half_of(last_dim_size), " complex ones, but self has ", self.sizes[size_t(last)],
               " along dim ", last);
  return {with_dim(Sizes<S>(self.sizes), last, last_dim_size), traits(self.dtype).component};
}

#define STRATA_RULES(S)                                                               \
  template Prepared<S> complex_spectrum(const Geometry<S>&, IntArrayRef, int64_t);    \
  template Prepared<S> real_spectrum(const Geometry<S>&, IntArrayRef, int64_t, bool); \
  template Prepared<S> from_half_spectrum(const Geometry<S>&, IntArrayRef, int64_t, const S&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
