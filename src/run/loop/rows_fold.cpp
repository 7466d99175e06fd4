#include "run/loop/rows_fold.h"

#include <cstring>

#include "run/loop/cast.h"

namespace strata::eager {

namespace {

template <class T>
T value(const Value& v) {
  T t;
  std::memcpy(&t, v.bytes, sizeof(T));
  return t;
}

template <class T>
Value combine_as(uint8_t how, const Value& a, const Value& b) {
  T x = value<T>(a), y = value<T>(b), r{};
  auto is_nan = [](T v) { return v != v; };
  switch (how) {
    case STRATA_COMBINE_ADD:
      r = x + y;
      break;
    case STRATA_COMBINE_MUL:
      r = x * y;
      break;
    case STRATA_COMBINE_MAX:
      r = is_nan(x) || x >= y ? x : y;
      break;
    case STRATA_COMBINE_MIN:
      r = is_nan(x) || x <= y ? x : y;
      break;
    case STRATA_COMBINE_OR:
      r = T(x != T(0) || y != T(0));
      break;
    case STRATA_COMBINE_AND:
      r = T(x != T(0) && y != T(0));
      break;
    default: {
      // The first of equals wins, and the first NaN.
      bool second = !is_nan(x) && (is_nan(y) || (how == STRATA_COMBINE_ARGMAX ? y > x : y < x));
      return second ? b : a;
    }
  }
  Value out{};
  std::memcpy(out.bytes, &r, sizeof(T));
  return out;
}

template <class T>
Value combine_complex(uint8_t how, const Value& a, const Value& b) {
  T p[2], q[2], r[2];
  std::memcpy(p, a.bytes, sizeof p);
  std::memcpy(q, b.bytes, sizeof q);
  if (how == STRATA_COMBINE_ADD) {
    r[0] = p[0] + q[0];
    r[1] = p[1] + q[1];
  } else {
    r[0] = p[0] * q[0] - p[1] * q[1];
    r[1] = p[0] * q[1] + p[1] * q[0];
  }
  Value out{};
  std::memcpy(out.bytes, r, sizeof r);
  return out;
}

Value combine(const StrataReduction& how, const Value& a, const Value& b) {
  switch (static_cast<DType>(how.accumulator)) {
    case DType::F32:
      return combine_as<float>(how.combine, a, b);
    case DType::F64:
      return combine_as<double>(how.combine, a, b);
    case DType::Bool:
    case DType::U8:
      return combine_as<uint8_t>(how.combine, a, b);
    case DType::I8:
      return combine_as<int8_t>(how.combine, a, b);
    case DType::U16:
      return combine_as<uint16_t>(how.combine, a, b);
    case DType::I16:
      return combine_as<int16_t>(how.combine, a, b);
    case DType::U32:
      return combine_as<uint32_t>(how.combine, a, b);
    case DType::I32:
      return combine_as<int32_t>(how.combine, a, b);
    case DType::U64:
      return combine_as<uint64_t>(how.combine, a, b);
    case DType::C64:
      return combine_complex<float>(how.combine, a, b);
    case DType::C128:
      return combine_complex<double>(how.combine, a, b);
    default:
      return combine_as<uint64_t>(how.combine, a, b);
  }
}

Value combine_i64(const StrataReduction& how, const Value& a, const Value& b) {
  return static_cast<DType>(how.accumulator) == DType::I64 && how.combine > STRATA_COMBINE_MUL
             ? combine_as<int64_t>(how.combine, a, b)
             : combine(how, a, b);
}

}  // namespace

Value fold(const StrataReduction& how, Value* v, int64_t n) {
  while (n > 1) {
    int64_t half = n / 2;
    for (int64_t i = 0; i < half; ++i) v[i] = combine_i64(how, v[2 * i], v[2 * i + 1]);
    if (n % 2) v[half] = v[n - 1];
    n = half + n % 2;
  }
  return v[0];
}

Workspace& part_workspace() {
  static thread_local Workspace space;
  return space;
}

Value identity(const StrataReduction& how) {
  Value v{};
  bool one = how.combine == STRATA_COMBINE_MUL || how.combine == STRATA_COMBINE_AND;
  if (one) store_scalar(Scalar(1), static_cast<DType>(how.accumulator), v.bytes);
  return v;
}

}  // namespace strata::eager
