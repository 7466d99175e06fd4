// strata.fft over _fft_c2c, _fft_r2c and _fft_c2r: which dims and lengths are meant, what is cut or filled with zeros,
// and how results are scaled.
#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "core/promote.h"
#include "strata/generated/by_hand/fft.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/fft.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

using Norm = std::optional<std::string_view>;
using Length = std::optional<int64_t>;

// What the library's operators call it: not, by the root of the length, by the length.
enum { kNone = 0, kRoot = 1, kWhole = 2 };

int64_t normalization(const Norm& norm, bool forward) {
  const std::string_view name = norm.value_or("backward");
  if (name == "backward") return forward ? kNone : kWhole;
  if (name == "forward") return forward ? kWhole : kNone;
  STRATA_CHECK(name == "ortho", "Invalid normalization mode: \"", name, "\"; expected backward, forward or ortho");
  return kRoot;
}

// Integers as the default dtype.
Tensor floating(const Tensor& x) {
  const Tensor f = is_differentiable(x.dtype()) ? x : ops::to(x, default_dtype());
  STRATA_CHECK(f.dtype() != DType::F16 && f.dtype() != DType::BF16, "Unsupported dtype ", scalar_type_name(f.dtype()),
               ": Fourier transforms take float32, float64, complex64 and complex128; convert with .to()");
  return f;
}
Tensor complex(const Tensor& x) {
  const Tensor f = floating(x);
  return f.is_complex() ? f : ops::to(f, to_complex(f.dtype()));
}
Tensor real(const char* name, const Tensor& x) {
  STRATA_CHECK(!x.is_complex(), name, " expects a real input tensor, but got ", scalar_type_name(x.dtype()));
  return floating(x);
}

int64_t dim_of(const Tensor& x, int64_t dim) {
  STRATA_CHECK_INDEX(x.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, x.dim());
}

void check_length(int64_t n) { STRATA_CHECK(n >= 1, "Invalid number of data points (", n, ") specified"); }

// Of a signal of which a half is given, where nothing else is said.
int64_t whole_length(int64_t half) { return checked_mul(2, half - 1, "fft: length"); }

// The dim cut, or filled with zeros, to n.
Tensor resized(const Tensor& x, int64_t dim, int64_t n) {
  check_length(n);
  const int64_t have = x.size(dim);
  if (n <= have) return n < have ? ops::narrow(x, dim, 0, n) : x;
  DimVec pad(size_t(2 * (x.dim() - dim)), 0);
  pad.back() = n - have;
  return ops::constant_pad_nd(x, pad, Scalar(0));
}

// ---- one dim

Tensor transform(const Tensor& self, Length n, int64_t dim, Norm norm, bool forward) {
  const Tensor x = floating(self);
  dim = dim_of(x, dim);
  const Tensor sized = resized(x, dim, n.value_or(x.size(dim)));
  const int64_t by = normalization(norm, forward);
  if (x.is_complex()) return ops::_fft_c2c(sized, {dim}, by, forward);
  const Tensor made = ops::_fft_r2c(sized, {dim}, by, false);
  return forward ? made : ops::_conjugate(made);
}

Tensor to_half(const char* name, const Tensor& self, Length n, int64_t dim, Norm norm, bool forward) {
  const Tensor x = real(name, self);
  dim = dim_of(x, dim);
  const Tensor sized = resized(x, dim, n.value_or(x.size(dim)));
  const Tensor made = ops::_fft_r2c(sized, {dim}, normalization(norm, forward), true);
  return forward ? made : ops::_conjugate(made);
}

Tensor from_half(const Tensor& self, Length n, int64_t dim, Norm norm, bool forward) {
  const Tensor x = complex(self);
  dim = dim_of(x, dim);
  const int64_t length = n ? *n : whole_length(x.size(dim));
  check_length(length);
  const Tensor half = resized(x, dim, length / 2 + 1);
  return ops::_fft_c2r(forward ? ops::_conjugate(half) : half, {dim}, normalization(norm, forward), length);
}

// ---- several dims

struct Dims {
  DimVec dims, sizes;  // -1: as it is
};

// The dims in the order given, all by default, or as many as there are sizes.
Dims dims_of(const Tensor& x, OptIntArrayRef s, OptIntArrayRef dim) {
  Dims r;
  const int64_t ndim = x.dim();
  if (dim) {
    STRATA_CHECK(!s || s->size() == dim->size(), "When given, dim and shape arguments must have the same length");
    std::vector<bool> seen(size_t(ndim), false);
    for (int64_t d : *dim) {
      const int64_t at = dim_of(x, d);
      STRATA_CHECK(!seen[size_t(at)], "FFT dims must be unique");
      seen[size_t(at)] = true;
      r.dims.push_back(at);
    }
  } else {
    STRATA_CHECK(!s || int64_t(s->size()) <= ndim, "Got shape with ", s ? s->size() : 0,
                 " values but input tensor only has ", ndim, " dimensions.");
    for (int64_t d = s ? ndim - int64_t(s->size()) : 0; d < ndim; ++d) r.dims.push_back(d);
  }
  r.sizes = s ? DimVec(*s) : DimVec(r.dims.size(), -1);
  return r;
}

void check_some(const char* name, const Dims& d) {
  STRATA_CHECK(!d.dims.empty(), name, " must transform at least one axis");
}

// All dims cut or filled but for the last `less`.
Tensor resized_all(Tensor x, const Dims& d, size_t less = 0) {
  for (size_t i = 0; i + less < d.dims.size(); ++i)
    x = resized(x, d.dims[i], d.sizes[i] == -1 ? x.size(d.dims[i]) : d.sizes[i]);
  return x;
}

Tensor transform_all(const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm, bool forward) {
  const Tensor x = floating(self);
  const Dims d = dims_of(x, s, dim);
  const int64_t by = normalization(norm, forward);
  if (d.dims.empty()) return ops::_fft_c2c(complex(x), d.dims, by, forward);
  const Tensor sized = resized_all(x, d);
  if (x.is_complex()) return ops::_fft_c2c(sized, d.dims, by, forward);
  const Tensor made = ops::_fft_r2c(sized, d.dims, by, false);
  return forward ? made : ops::_conjugate(made);
}

Tensor to_half_all(const char* name, const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm,
                   bool forward) {
  const Tensor x = real(name, self);
  const Dims d = dims_of(x, s, dim);
  check_some(name, d);
  const Tensor made = ops::_fft_r2c(resized_all(x, d), d.dims, normalization(norm, forward), true);
  return forward ? made : ops::_conjugate(made);
}

Tensor from_half_all(const char* name, const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm,
                     bool forward) {
  const Tensor x = complex(self);
  const Dims d = dims_of(x, s, dim);
  check_some(name, d);
  const int64_t last = d.dims.back(), asked = d.sizes.back();
  const int64_t length = asked == -1 ? whole_length(x.size(last)) : asked;
  check_length(length);
  const Tensor half = resized(resized_all(x, d, 1), last, length / 2 + 1);
  const int64_t by = normalization(norm, forward);
  return ops::_fft_c2r(forward ? ops::_conjugate(half) : half, d.dims, by, length);
}

DimVec all_dims(const Tensor& x, OptIntArrayRef dim) {
  DimVec r = dim ? DimVec(*dim) : DimVec();
  for (int64_t d = 0; !dim && d < x.dim(); ++d) r.push_back(d);
  return r;
}

DType frequency_dtype(const char* name, int64_t n, std::optional<DType> dtype) {
  STRATA_CHECK(n >= 0, name, ": expected n >= 0, but got n=", n);
  const DType t = dtype.value_or(default_dtype());
  STRATA_CHECK(is_differentiable(t), name, " requires a floating point or complex dtype, but got ",
               scalar_type_name(t));
  return t;
}

}  // namespace

Tensor fft_fft(const Tensor& self, Length n, int64_t dim, Norm norm) { return transform(self, n, dim, norm, true); }
Tensor fft_ifft(const Tensor& self, Length n, int64_t dim, Norm norm) { return transform(self, n, dim, norm, false); }
Tensor fft_rfft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  return to_half("rfft", self, n, dim, norm, true);
}
Tensor fft_ihfft(const Tensor& self, Length n, int64_t dim, Norm norm) {
  return to_half("ihfft", self, n, dim, norm, false);
}
Tensor fft_irfft(const Tensor& self, Length n, int64_t dim, Norm norm) { return from_half(self, n, dim, norm, false); }
Tensor fft_hfft(const Tensor& self, Length n, int64_t dim, Norm norm) { return from_half(self, n, dim, norm, true); }

Tensor fft_fftn(const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm) {
  return transform_all(self, s, dim, norm, true);
}
Tensor fft_ifftn(const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm) {
  return transform_all(self, s, dim, norm, false);
}
Tensor fft_rfftn(const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm) {
  return to_half_all("rfftn", self, s, dim, norm, true);
}
Tensor fft_ihfftn(const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm) {
  return to_half_all("ihfftn", self, s, dim, norm, false);
}
Tensor fft_irfftn(const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm) {
  return from_half_all("irfftn", self, s, dim, norm, false);
}
Tensor fft_hfftn(const Tensor& self, OptIntArrayRef s, OptIntArrayRef dim, Norm norm) {
  return from_half_all("hfftn", self, s, dim, norm, true);
}

Tensor fft_fftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device) {
  const DType t = frequency_dtype("fftfreq", n, dtype);
  const Tensor first = ops::arange(Scalar(int64_t(0)), Scalar(n - n / 2), DType::I64, device);
  const Tensor second = ops::arange(Scalar(-(n / 2)), Scalar(int64_t(0)), DType::I64, device);
  return ops::mul(ops::to(ops::cat({first, second}, 0), t), Scalar(1.0 / (double(n) * d)));
}

Tensor fft_rfftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device) {
  const DType t = frequency_dtype("rfftfreq", n, dtype);
  const Tensor k = ops::arange(Scalar(int64_t(0)), Scalar(n / 2 + 1), DType::I64, device);
  return ops::mul(ops::to(k, t), Scalar(1.0 / (double(n) * d)));
}

Tensor fft_fftshift(const Tensor& self, OptIntArrayRef dim) {
  const DimVec dims = all_dims(self, dim);
  DimVec shifts;
  for (int64_t d : dims) shifts.push_back(self.size(d) / 2);
  return ops::roll(self, shifts, dims);
}

Tensor fft_ifftshift(const Tensor& self, OptIntArrayRef dim) {
  const DimVec dims = all_dims(self, dim);
  DimVec shifts;
  for (int64_t d : dims) shifts.push_back((self.size(d) + 1) / 2);
  return ops::roll(self, shifts, dims);
}

}  // namespace strata::eager
