#include "run/loop/cast.h"

#include <algorithm>
#include <cstring>

#include "run/loop/convert.h"

namespace strata::eager {

void cast_apart(CastFn fn, int64_t a, int64_t b, const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  constexpr int64_t kChunk = 256, kFew = 4;
  alignas(64) char in[kChunk * 16], out[kChunk * 16];
  if (ss == 0 && n > 1) {
    fn(src, a, out, b, 1);
    return move_fn(b)(out, 0, dst, ds, n);
  }
  for (int64_t i = 0; i < n && n <= kFew; ++i) fn(src + i * ss, a, dst + i * ds, b, 1);
  for (int64_t i = 0; i < n && n > kFew; i += kChunk) {
    const int64_t here = std::min(kChunk, n - i);
    const char* from = src + i * ss;
    if (ss != a) move_fn(a)(from, ss, in, a, here), from = in;
    fn(from, a, ds == b ? dst + i * ds : out, b, here);
    if (ds != b) move_fn(b)(out, b, dst + i * ds, ds, here);
  }
}

namespace {

template <class S, class D>
void cast_run(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  if (ss != int64_t(sizeof(S)) || ds != int64_t(sizeof(D)))
    return convert_apart<S, D>(cast_run<S, D>, src, ss, dst, ds, n);
  const S* s = reinterpret_cast<const S*>(src);
  D* d = reinterpret_cast<D*>(dst);
  for (int64_t i = 0; i < n; ++i) put(d + i, s[i]);
}

template <class S>
CastFn from_real(DType to) {
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

template <class S>
CastFn from_complex(DType to) {
  return to == DType::Bool  ? cast_run<S, bool>
         : to == DType::C64 ? cast_run<S, std::complex<float>>
                            : cast_run<S, std::complex<double>>;
}

}  // namespace

CastFn cast_fn(DType from, DType to) {
  if (from == to) return move_fn(itemsize(from));
  // A real part lies where the complex number does.
  if (is_complex(from) && !is_complex(to) && to != DType::Bool) return cast_fn(traits(from).component, to);
  if (is_half(from) || is_half(to)) return half_cast_fn(from, to);
  if (const CastFn wide = wide_cast_fn(from, to)) return wide;
  switch (from) {
    case DType::Bool:
      return from_real<Truth>(to);
    case DType::U8:
      return from_real<uint8_t>(to);
    case DType::I8:
      return from_real<int8_t>(to);
    case DType::U16:
      return from_real<uint16_t>(to);
    case DType::I16:
      return from_real<int16_t>(to);
    case DType::U32:
      return from_real<uint32_t>(to);
    case DType::I32:
      return from_real<int32_t>(to);
    case DType::U64:
      return from_real<uint64_t>(to);
    case DType::I64:
      return from_real<int64_t>(to);
    case DType::F16:
    case DType::BF16:
      break;
    case DType::F32:
      return from_real<float>(to);
    case DType::F64:
      return from_real<double>(to);
    case DType::C64:
      return from_complex<std::complex<float>>(to);
    case DType::C128:
      return from_complex<std::complex<double>>(to);
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
