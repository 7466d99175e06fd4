// Short-time Fourier transforms: frames of a signal, each transformed, and back.
#include <string>

#include "base/checked.h"
#include "core/promote.h"
#include "strata/generated/by_hand/fft.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/close.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/fft.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/power.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

struct Frames {
  int64_t hop, window;
};

Frames frames_of(const char* name, int64_t n_fft, std::optional<int64_t> hop_length,
                 std::optional<int64_t> win_length) {
  const Frames f{hop_length.value_or(n_fft / 4), win_length.value_or(n_fft)};
  STRATA_CHECK(f.hop > 0, name, ": expected hop_length > 0, but got hop_length=", f.hop);
  STRATA_CHECK(f.window > 0 && f.window <= n_fft, name,
               ": expected 0 < win_length <= n_fft, but got win_length=", f.window);
  return f;
}

// The window, in the middle of n_fft places.
Tensor placed(const Tensor& window, const Tensor& like, int64_t length, int64_t n_fft) {
  const Tensor w = window.defined() ? window : ops::ones(DimVec{length}, traits(like.dtype()).component, like.device());
  STRATA_CHECK(w.dim() == 1 && w.size(0) == length, "expected a 1D window tensor of size equal to win_length=", length,
               ", but got window with size ", w.sizes());
  const int64_t left = (n_fft - length) / 2;
  return length < n_fft ? ops::constant_pad_nd(w, {left, n_fft - length - left}, Scalar(0)) : w;
}

}  // namespace

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
            const Tensor& window, bool center, std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  STRATA_CHECK(return_complex || self.is_complex() || (window.defined() && window.is_complex()),
               "stft requires the return_complex parameter be given for real inputs, and will further require that "
               "return_complex=True in a future PyTorch release.");
  STRATA_CHECK(is_differentiable(self.dtype()), "stft: expected a tensor of floating point or complex values, got ",
               scalar_type_name(self.dtype()));
  STRATA_CHECK(self.dim() == 1 || self.dim() == 2, "stft: expected a 1D or 2D tensor, but got ", self.dim(), "D");
  STRATA_CHECK(!center || !align_to_window, "stft align_to_window should only be set when center = false");
  STRATA_CHECK(n_fft > 0, "stft: expected n_fft > 0, but got n_fft=", n_fft);
  const Frames f = frames_of("stft", n_fft, hop_length, win_length);
  const bool batched = self.dim() == 2;
  Tensor x = batched ? self : ops::unsqueeze(self, 0);
  if (center) {
    const DimVec both(2, n_fft / 2);
    x = ops::squeeze(ops::pad(ops::unsqueeze(x, 1), both, pad_mode, std::nullopt), 1);
  }
  STRATA_CHECK(n_fft <= x.size(1), "stft: expected n_fft <= ", x.size(1),
               ", the signal's length, but got n_fft=", n_fft);
  if (align_to_window.value_or(false)) {  // the first window begins where the signal does
    const int64_t left = (n_fft - f.window) / 2;
    x = ops::constant_pad_nd(x, {left, n_fft - f.window - left}, Scalar(0));
  }
  Tensor frames = ops::unfold(x, -1, n_fft, f.hop);
  if (window.defined() || f.window < n_fft) frames = ops::mul(frames, placed(window, x, f.window, n_fft));
  const bool half = onesided.value_or(!frames.is_complex());
  STRATA_CHECK(!half || !frames.is_complex(), "Cannot have onesided output if window or input is complex");
  const std::optional<std::string_view> norm = normalized ? std::optional<std::string_view>("ortho") : std::nullopt;
  Tensor made = half ? ops::fft_rfft(frames, std::nullopt, -1, norm) : ops::fft_fft(frames, std::nullopt, -1, norm);
  made = ops::transpose(made, -2, -1);
  if (!batched) made = ops::squeeze(made, 0);
  return return_complex.value_or(true) ? made : ops::view_as_real(ops::contiguous(made));
}

Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
             const Tensor& window, bool center, bool normalized, std::optional<bool> onesided,
             std::optional<int64_t> length, bool return_complex) {
  STRATA_CHECK(self.is_complex(),
               "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  STRATA_CHECK(self.dim() == 2 || self.dim() == 3, "istft: expected a tensor with 2 or 3 dimensions, but got ",
               self.dim());
  const Frames f = frames_of("istft", n_fft, hop_length, win_length);
  STRATA_CHECK(f.hop <= f.window, "istft: expected hop_length <= win_length, but got hop_length=", f.hop,
               " and win_length=", f.window);
  STRATA_CHECK(self.numel() > 0, "istft: input tensor cannot be empty, but got one of size ", self.sizes());
  const bool complex_window = window.defined() && window.is_complex();
  STRATA_CHECK(return_complex || !complex_window, "Complex windows are incompatible with return_complex=False");
  const bool batched = self.dim() == 3;
  const Tensor x = ops::transpose(batched ? self : ops::unsqueeze(self, 0), -2, -1);  // (B, frames, frequencies)
  const bool half = onesided.value_or(x.size(2) != n_fft);
  STRATA_CHECK(!half || !return_complex, "Cannot have onesided output if window or input is complex");
  STRATA_CHECK(x.size(2) == (half ? n_fft / 2 + 1 : n_fft),
               "istft: expected the frequency dimension (2nd to the last) of the input tensor to match n_fft",
               half ? " / 2 + 1" : "", " when onesided=", half ? "True" : "False", ", but got ", x.size(2));
  const Tensor weights = placed(window, x, f.window, n_fft);
  const std::optional<std::string_view> norm = normalized ? std::optional<std::string_view>("ortho") : std::nullopt;
  Tensor frames = return_complex ? ops::fft_ifft(x, std::nullopt, -1, norm)
                                 : ops::fft_irfft(half ? x : ops::narrow(x, 2, 0, n_fft / 2 + 1), n_fft, -1, norm);
  frames = ops::mul(frames, weights);
  const int64_t count = frames.size(1), total = n_fft + f.hop * (count - 1);
  const KindGuard kind(x);
  const auto numbers = [&](int64_t n) { return ops::arange(Scalar(n), DType::I64, x.device()); };
  const Tensor starts = ops::mul(ops::unsqueeze(numbers(count), 1), Scalar(f.hop));
  const Tensor places = ops::flatten(ops::add(starts, numbers(n_fft)));
  Tensor signal = ops::new_zeros(frames, {frames.size(0), total});
  signal = ops::index_add(signal, 1, places, ops::flatten(frames, 1));
  Tensor envelope = ops::new_zeros(weights, {total});
  envelope = ops::index_add(envelope, 0, places, ops::repeat(ops::square(weights), {count}));
  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t end = std::min(length ? start + std::min(*length, total) : center ? total - n_fft / 2 : total, total);
  STRATA_CHECK(start < end, "istft: expected a signal of at least one element, got ", end - start, " from ", count,
               " frames of ", n_fft, " elements");
  signal = ops::narrow(signal, 1, start, end - start);
  envelope = ops::narrow(envelope, 0, start, end - start);
  ops::_check(ops::ge(ops::abs(envelope), Scalar(1e-11)),
              "istft: window overlap add min is below 1e-11: the windows must reach every place");
  signal = ops::div(signal, envelope);
  if (length && signal.size(1) < *length)
    signal = ops::constant_pad_nd(signal, {0, *length - signal.size(1)}, Scalar(0));
  return batched ? signal : ops::squeeze(signal, 0);
}

}  // namespace strata::eager
