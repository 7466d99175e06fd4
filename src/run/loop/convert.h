// One value as another dtype, with the rounding and saturation of contract 3.
#pragma once
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "run/loop/cast.h"

namespace strata::eager {

template <class T>
constexpr bool is_cplx = false;
template <class T>
constexpr bool is_cplx<std::complex<T>> = true;

// A bool in memory, which may be any byte (another dtype's, viewed): all but 0 are true.
struct Truth {
  uint8_t byte;
};

template <class D, class S>
[[gnu::always_inline]] inline D convert(S v) {
  if constexpr (std::is_same_v<S, Truth> && std::is_floating_point_v<D>) {
    // The bits of 1 or none: of a choice between numbers LLVM makes branches.
    using Bits = std::conditional_t<sizeof(D) == 4, uint32_t, uint64_t>;
    return std::bit_cast<D>(Bits(-Bits(v.byte != 0)) & std::bit_cast<Bits>(D(1)));
  } else if constexpr (std::is_same_v<S, Truth> && !is_cplx<D>) {
    return convert<D>(uint8_t(v.byte != 0));
  } else if constexpr (std::is_same_v<S, D>) {
    return v;
  } else if constexpr (is_cplx<D>) {
    using P = typename D::value_type;
    if constexpr (is_cplx<S>)
      return D(P(v.real()), P(v.imag()));
    else
      return D(convert<P>(v), P(0));
  } else if constexpr (is_cplx<S>) {
    if constexpr (std::is_same_v<D, bool>)
      return v.real() != 0 || v.imag() != 0;
    else
      return convert<D>(v.real());
  } else if constexpr (std::is_same_v<D, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    // Without branches, so that a loop of them is one of vectors.
    using Limits = std::numeric_limits<D>;
    if constexpr (Limits::digits <= std::numeric_limits<S>::digits && sizeof(D) <= 4) {  // the bounds are exact in S
      S held = v < S(Limits::min()) ? S(Limits::min()) : v;
      held = held > S(Limits::max()) ? S(Limits::max()) : held;
      using Wide = std::conditional_t<(sizeof(D) < 4), int32_t, D>;
      return static_cast<D>(static_cast<Wide>(v == v ? held : S(0)));
    } else {
      constexpr S top = S(uint64_t(1) << (Limits::digits - 1)) * 2;  // powers of two are
      constexpr S bottom = std::is_signed_v<D> ? -top : S(0);
      const bool high = v >= top, inside = v >= bottom && !high;
      const D held = static_cast<D>(inside ? v : S(0));
      return high ? Limits::max() : v < bottom ? Limits::min() : held;
    }
  } else {
    return static_cast<D>(v);
  }
}

// A real number is the lower half of a complex64's bits, whose upper one is 0: no pair that is built of two.
template <class D, class S>
[[gnu::always_inline]] inline void put(D* to, S v) {
  if constexpr (std::is_same_v<D, std::complex<float>> && !is_cplx<S>) {
    const uint64_t bits = std::bit_cast<uint32_t>(convert<float>(v));
    std::memcpy(to, &bits, sizeof bits);
  } else {
    *to = convert<D>(v);
  }
}

// Elements with gaps; `whole` is for such without. Where bounds take the time, as many as fit in a buffer are moved
// first.
template <class S, class D>
void convert_apart(CastFn whole, const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    cast_apart(whole, sizeof(S), sizeof(D), src, ss, dst, ds, n);
  } else {
    for (int64_t i = 0; i < n; ++i, src += ss, dst += ds)
      put(reinterpret_cast<D*>(dst), *reinterpret_cast<const S*>(src));
  }
}

}  // namespace strata::eager
