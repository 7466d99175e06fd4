#include "run/loop/cast.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace strata::eager {

namespace {

template <class T>
constexpr bool is_cplx = false;
template <class T>
constexpr bool is_cplx<std::complex<T>> = true;

// A bool in memory, which may be any byte (another dtype's, viewed): all but 0 are true.
struct Truth {
  uint8_t byte;
};

// Value conversion with the rounding and saturation of the contract.
template <class D, class S>
inline D convert(S v) {
  if constexpr (std::is_same_v<S, Truth>) {
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
    // Bounds as powers of two are exact in S.
    constexpr int digits = std::numeric_limits<D>::digits;
    const S top = std::ldexp(S(1), digits);
    const S bottom = std::is_signed_v<D> ? -top : S(0);
    if (!(v == v)) return D(0);
    if (v >= top) return std::numeric_limits<D>::max();
    if (v < bottom) return std::numeric_limits<D>::min();
    return static_cast<D>(v);
  } else {
    return static_cast<D>(v);
  }
}

template <class S, class D>
void cast_run(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  if (ss == int64_t(sizeof(S)) && ds == int64_t(sizeof(D))) {
    const S* s = reinterpret_cast<const S*>(src);
    D* d = reinterpret_cast<D*>(dst);
    for (int64_t i = 0; i < n; ++i) d[i] = convert<D>(s[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i, src += ss, dst += ds)
    *reinterpret_cast<D*>(dst) = convert<D>(*reinterpret_cast<const S*>(src));
}

template <class S>
CastFn from_type(DType to) {
  switch (to) {
    case DType::Bool:
      return cast_run<S, bool>;
    case DType::U8:
      return cast_run<S, uint8_t>;
    case DType::I8:
      return cast_run<S, int8_t>;
    case DType::U16:
      return cast_run<S, uint16_t>;
    case DType::I16:
      return cast_run<S, int16_t>;
    case DType::U32:
      return cast_run<S, uint32_t>;
    case DType::I32:
      return cast_run<S, int32_t>;
    case DType::U64:
      return cast_run<S, uint64_t>;
    case DType::I64:
      return cast_run<S, int64_t>;
    case DType::F16:
    case DType::BF16:
      break;
    case DType::F32:
      return cast_run<S, float>;
    case DType::F64:
      return cast_run<S, double>;
    case DType::C64:
      return cast_run<S, std::complex<float>>;
    case DType::C128:
      return cast_run<S, std::complex<double>>;
  }
  return nullptr;
}

}  // namespace

CastFn cast_fn(DType from, DType to) {
  if (from == to) return move_fn(itemsize(from));
  if (is_half(from) || is_half(to)) return half_cast_fn(from, to);
  switch (from) {
    case DType::Bool:
      return from_type<Truth>(to);
    case DType::U8:
      return from_type<uint8_t>(to);
    case DType::I8:
      return from_type<int8_t>(to);
    case DType::U16:
      return from_type<uint16_t>(to);
    case DType::I16:
      return from_type<int16_t>(to);
    case DType::U32:
      return from_type<uint32_t>(to);
    case DType::I32:
      return from_type<int32_t>(to);
    case DType::U64:
      return from_type<uint64_t>(to);
    case DType::I64:
      return from_type<int64_t>(to);
    case DType::F16:
    case DType::BF16:
      break;
    case DType::F32:
      return from_type<float>(to);
    case DType::F64:
      return from_type<double>(to);
    case DType::C64:
      return from_type<std::complex<float>>(to);
    case DType::C128:
      return from_type<std::complex<double>>(to);
  }
  return nullptr;
}

void store_scalar(const Scalar& value, DType t, void* dst) {
  if (STRATA_LIKELY(t == DType::F32 && !value.is_complex() && !value.is_unsigned64())) {
    *static_cast<float*>(dst) = value.is_float() ? float(value.to_double()) : float(value.to_int());
    return;
  }
  if (t == DType::Bool) {
    *static_cast<bool*>(dst) = value.to_bool();
    return;
  }
  if (is_complex(t)) {
    std::complex<double> v = value.to_complex();
    if (t == DType::C128)
      std::memcpy(dst, &v, 16);
    else
      *static_cast<std::complex<float>*>(dst) = std::complex<float>(float(v.real()), float(v.imag()));
    return;
  }
  if (value.is_float() || value.is_complex()) {
    double v = value.to_double();
    cast_fn(DType::F64, t)(reinterpret_cast<const char*>(&v), 8, static_cast<char*>(dst), itemsize(t), 1);
    return;
  }
  int64_t v = value.to_int();
  DType from = value.is_unsigned64() ? DType::U64 : DType::I64;
  cast_fn(from, t)(reinterpret_cast<const char*>(&v), 8, static_cast<char*>(dst), itemsize(t), 1);
}

}  // namespace strata::eager
