#include "core/scalar.h"

#include <limits>

namespace strata {

namespace {

template <class T>
bool int_fits(const Scalar& value) {
  using L = std::numeric_limits<T>;
  if (value.is_float()) {
    double d = value.to_double();
    return d >= double(L::lowest()) && d <= double(L::max());
  }
  if (value.is_unsigned64()) return uint64_t(value.to_int()) <= uint64_t(L::max());
  int64_t v = value.to_int();
  if constexpr (L::is_signed) return v >= int64_t(L::min()) && v <= int64_t(L::max());
  return (v < 0 ? 0 - uint64_t(v) : uint64_t(v)) <= uint64_t(L::max());
}

bool float_fits(double v, DType t) {
  if (!std::isfinite(v)) return true;
  switch (t) {
    case DType::F16:
      return std::abs(v) <= 65504;
    case DType::BF16:
      return std::abs(v) <= 0x1.fep127;
    case DType::F32:
    case DType::C64:
      return std::abs(v) <= std::numeric_limits<float>::max();
    default:
      return true;
  }
}

// As C++ names the types, since PyTorch's texts do.
const char* c_name(DType t) {
  switch (t) {
    case DType::Bool:
      return "bool";
    case DType::U8:
      return "uint8_t";
    case DType::I8:
      return "int8_t";
    case DType::U16:
      return "uint16_t";
    case DType::I16:
      return "int16_t";
    case DType::U32:
      return "uint32_t";
    case DType::I32:
      return "int";
    case DType::U64:
      return "uint64_t";
    case DType::I64:
      return "int64_t";
    case DType::F16:
      return "c10::Half";
    case DType::BF16:
      return "c10::BFloat16";
    case DType::F32:
      return "float";
    case DType::F64:
      return "double";
    case DType::C64:
      return "c10::complex<float>";
    default:
      return "c10::complex<double>";
  }
}

}  // namespace

bool fits(const Scalar& value, DType t) {
  if (value.is_bool() || t == DType::Bool) return true;
  if (value.is_complex()) {
    std::complex<double> v = value.to_complex();
    if (is_complex(t)) return float_fits(v.real(), t) && float_fits(v.imag(), t);
    return v.imag() == 0 && fits(Scalar(v.real()), t);
  }
  switch (t) {
    case DType::U8:
      return int_fits<uint8_t>(value);
    case DType::I8:
      return int_fits<int8_t>(value);
    case DType::U16:
      return int_fits<uint16_t>(value);
    case DType::I16:
      return int_fits<int16_t>(value);
    case DType::U32:
      return int_fits<uint32_t>(value);
    case DType::I32:
      return int_fits<int32_t>(value);
    case DType::U64:
      return int_fits<uint64_t>(value);
    case DType::I64:
      return int_fits<int64_t>(value);
    default:
      return float_fits(value.to_double(), t);
  }
}

void refuse_number(DType t) {
  throw_error(ErrorKind::Runtime, str_cat("value cannot be converted to type ", c_name(t), " without overflow"));
}

}  // namespace strata
