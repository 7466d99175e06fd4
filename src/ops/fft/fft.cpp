// Fourier transforms along dims: by the library where there is one, else composed of operators.
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/checked.h"
#include "core/parallel.h"
#include "ops/fft/composed.h"
#include "ops/fft/lines.h"
#include "run/copy.h"
#include "strata/generated/by_hand/fft.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

DimVec wrapped(IntArrayRef dim, int64_t ndim) {
  DimVec r(dim);
  for (int64_t& d : r) d = wrap_dim(d, ndim);
  return r;
}

// What results are multiplied by: sizes are those of the side that is not halved.
double scale_of(IntArrayRef sizes, IntArrayRef dims, int64_t normalization) {
  double n = 1;
  for (int64_t d : dims) n *= double(sizes[size_t(d)]);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

bool is_precise(const Tensor& t) { return t.dtype() == DType::F64 || t.dtype() == DType::C128; }

// Along one dim, from one tensor to another, or in its place.
void transform(const StrataFourier& library, StrataFourierKind kind, const Tensor& from, const Tensor& to, int64_t dim,
               int64_t length, double scale, const char* op, bool mirrored = false) {
  LinesPass pass{kind, is_precise(to), length, scale, from.data_ptr(), to.data_ptr()};
  pass.from_step = from.strides()[size_t(dim)];
  pass.to_step = to.strides()[size_t(dim)];
  pass.mirrored = mirrored;
  for (int64_t d = 0; d < to.dim(); ++d) {
    if (d == dim) continue;
    pass.sizes.push_back(to.sizes()[size_t(d)]);
    pass.from_strides.push_back(from.strides()[size_t(d)]);
    pass.to_strides.push_back(to.strides()[size_t(d)]);
  }
  transform_lines(library, pass, op);
}

// Along several dims, the last one first, which lies side by side as a rule.
void transform_all(const StrataFourier& library, bool forward, const Tensor& from, const Tensor& to, IntArrayRef dims,
                   double scale, const char* op) {
  const auto kind = forward ? STRATA_FOURIER_FORWARD : STRATA_FOURIER_BACKWARD;
  const Tensor* source = &from;
  for (size_t i = dims.size(); i-- > 0;) {
    transform(library, kind, *source, to, dims[i], to.sizes()[size_t(dims[i])], i ? 1.0 : scale, op);
    source = &to;
  }
}

// The values behind the half along the last of the dims, which has them already elsewhere: result[-k] =
// conj(result[k]).
template <class R>
void mirror(const Tensor& result, IntArrayRef dims) {
  using Complex = std::complex<R>;
  const int64_t last = dims.back(), n = result.sizes()[size_t(last)], half = n / 2 + 1;
  const int64_t step = result.strides()[size_t(last)];
  DimVec sizes(result.sizes()), turned(size_t(result.dim()), 0);
  for (int64_t d : dims) turned[size_t(d)] = 1;
  sizes[size_t(last)] = 1;
  auto* values = result.data<Complex>();
  parallel_for(0, checked_numel(sizes), std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, to = 0, from = 0;
      for (size_t d = sizes.size(); d-- > 0;) {
        const int64_t at = rest % sizes[d], stride = result.strides()[d];
        rest /= sizes[d];
        to += at * stride;
        from += (turned[d] && at ? sizes[d] - at : at) * stride;
      }
      for (int64_t k = half; k < n; ++k) values[to + k * step] = std::conj(values[from + (n - k) * step]);
    }
  });
}

}  // namespace

void fft_c2c(const Tensor& result, const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward) {
  if (result.numel() == 0) return;
  const DimVec dims = wrapped(dim, self.dim());
  const double scale = scale_of(self.sizes(), dims, normalization);
  const StrataFourier* library = fourier();
  if (dims.empty()) return copy_values(result, self);
  if (!library) return copy_values(result, scaled(composed_transform(self, dims, forward), scale));
  transform_all(*library, forward, self, result, dims, scale, "_fft_c2c");
}

void fft_r2c(const Tensor& result, const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided) {
  if (result.numel() == 0) return;
  const DimVec dims = wrapped(dim, self.dim());
  const int64_t last = dims.back(), n = self.sizes()[size_t(last)], half = n / 2 + 1;
  const double scale = scale_of(self.sizes(), dims, normalization);
  const StrataFourier* library = fourier();
  if (!library) {
    const Tensor all = scaled(composed_transform(as_dtype(self, result.dtype()), dims, true), scale);
    return copy_values(result, onesided ? ops::narrow(all, last, 0, half) : all);
  }
  const DimVec others(IntArrayRef(dims).slice(0, dims.size() - 1));
  transform(*library, STRATA_FOURIER_REAL, self, result, last, n, others.empty() ? scale : 1.0, "_fft_r2c",
            !onesided && others.empty());
  if (others.empty()) return;
  const Tensor made = onesided ? result : ops::narrow(result, last, 0, half);
  transform_all(*library, true, made, made, others, scale, "_fft_r2c");
  if (!onesided) result.dtype() == DType::C64 ? mirror<float>(result, dims) : mirror<double>(result, dims);
}

void fft_c2r(const Tensor& result, const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size) {
  if (result.numel() == 0) return;
  const DimVec dims = wrapped(dim, self.dim());
  const DimVec others(IntArrayRef(dims).slice(0, dims.size() - 1));
  const int64_t last = dims.back();
  const double scale = scale_of(result.sizes(), dims, normalization);
  const StrataFourier* library = fourier();
  if (!library) return copy_values(result, scaled(composed_from_half(self, dims, last_dim_size), scale));
  Tensor half = self;
  if (!others.empty()) {
    half = new_tensor(self, self.sizes());
    transform_all(*library, false, self, half, others, 1.0, "_fft_c2r");
  }
  transform(*library, STRATA_FOURIER_HALF, half, result, last, last_dim_size, scale, "_fft_c2r");
}

}  // namespace strata::eager
