#include "ops/fft/real_line.h"

#include <immintrin.h>

#include "core/parallel.h"
#include "ops/fft/roots.h"
#include "run/isa.h"

namespace strata::eager {

namespace {

constexpr int64_t kGrain = 1 << 15;  // elements that a thread takes at least

// Complex numbers side by side.
template <class R>
struct Several {
  typedef R V __attribute__((vector_size(32)));
  typedef R Any __attribute__((vector_size(32), aligned(alignof(R)), may_alias));
  static constexpr int64_t count = int64_t(16 / sizeof(R));
};

[[gnu::target("avx2"), gnu::always_inline]] inline __m256 turned(__m256 x) {  // the last number first
  return __builtin_shufflevector(x, x, 6, 7, 4, 5, 2, 3, 0, 1);
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256d turned(__m256d x) {
  return __builtin_shufflevector(x, x, 2, 3, 0, 1);
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256 conjugate(__m256 x) {
  return x * __m256{1, -1, 1, -1, 1, -1, 1, -1};
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256d conjugate(__m256d x) { return x * __m256d{1, -1, 1, -1}; }
[[gnu::target("avx2"), gnu::always_inline]] inline __m256 product(__m256 x, __m256 y) {
  return _mm256_addsub_ps(_mm256_moveldup_ps(x) * y, _mm256_movehdup_ps(x) * _mm256_permute_ps(y, 0xb1));
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256d product(__m256d x, __m256d y) {
  return _mm256_addsub_pd(_mm256_movedup_pd(x) * y, _mm256_permute_pd(x, 0xf) * _mm256_permute_pd(y, 0x5));
}

// What RealLine::pairs does, as far as whole vectors go: the first k that is left.
template <class R>
[[gnu::target("avx2")]] int64_t wide_pairs(const std::complex<R>* from, std::complex<R>* to, int64_t m,
                                           const std::complex<R>* turns, R scale, int64_t k, int64_t end) {
  using Any = typename Several<R>::Any;
  constexpr int64_t count = Several<R>::count;
  const auto at = [](const std::complex<R>* p) -> const Any& { return *reinterpret_cast<const Any*>(p); };
  for (; k + count <= end; k += count) {
    const int64_t partner = m - k - count + 1;
    const typename Several<R>::V a = at(from + k), b = conjugate(turned(at(from + partner)));
    const typename Several<R>::V sum = (a + b) * scale, rest = product(at(turns + k), a - b);
    *reinterpret_cast<Any*>(to + k) = sum + rest;
    *reinterpret_cast<Any*>(to + partner) = turned(conjugate(sum - rest));
  }
  return k;
}

}  // namespace

template <class R>
RealLine<R>::RealLine(int64_t length, bool back, double scale)
    : m_(length / 2), back_(back), scale_(R(back ? scale : scale / 2)) {
  const int64_t count = m_ / 2 + 1;
  const Roots roots(length, count, back ? 1 : -1);
  const double by = back ? scale : -scale / 2;
  turns_.resize(size_t(count));
  for (int64_t k = 0; k < count; ++k) {
    const std::complex<double> w = roots(k);
    turns_[size_t(k)] = {R(-w.imag() * by), R(w.real() * by)};
  }
}

template <class R>
void RealLine<R>::pairs(const std::complex<R>* from, std::complex<R>* to, int64_t begin, int64_t end) const {
  int64_t k = current_isa() == 0 ? begin : wide_pairs(from, to, m_, turns_.data(), scale_, begin, end);
  for (; k < end; ++k) {
    const std::complex<R> a = from[k], b = std::conj(from[m_ - k]), t = turns_[size_t(k)], d = a - b;
    const std::complex<R> sum = (a + b) * scale_;
    const std::complex<R> turned(t.real() * d.real() - t.imag() * d.imag(), t.real() * d.imag() + t.imag() * d.real());
    to[k] = sum + turned;
    to[m_ - k] = std::conj(sum - turned);
  }
}

template <class R>
void RealLine<R>::operator()(const std::complex<R>* from, std::complex<R>* to) const {
  const int64_t end = (m_ + 1) / 2;
  const R first = from[0].real(), last = back_ ? from[m_].real() : from[0].imag();
  const std::complex<R> middle = from[m_ / 2];
  if (end <= kGrain)
    pairs(from, to, 1, end);
  else
    parallel_for(1, end, kGrain, [&](int64_t i, int64_t j) { pairs(from, to, i, j); });
  const R ends = back_ ? scale_ : 2 * scale_;
  if (m_ % 2 == 0) to[m_ / 2] = std::conj(middle) * (2 * scale_);
  to[0] = {(first + last) * ends, back_ ? (first - last) * ends : R(0)};
  if (!back_) to[m_] = {(first - last) * ends, R(0)};
}

template class RealLine<float>;
template class RealLine<double>;

}  // namespace strata::eager
