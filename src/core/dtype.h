// Data types of tensor elements. Traits carry bits, not bytes, since types below one byte will come.
#pragma once
#include <complex>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

#include "base/error.h"

namespace strata {

enum class DType : uint8_t { Bool, U8, I8, U16, I16, U32, I32, U64, I64, F16, BF16, F32, F64, C64, C128 };
constexpr int kDTypeCount = 15;

enum class DKind : uint8_t { Bool, Unsigned, Signed, Float, Complex };

struct DTypeTraits {
  const char* name;   // as users write it: "float32"
  const char* cname;  // in names of generated kernels: "f32"
  DKind kind;
  uint16_t bits;
  DType compute;    // type of intermediates inside one operator
  DType component;  // of a complex type its part, else itself
};

namespace detail {
constexpr DTypeTraits kTraits[kDTypeCount] = {
    {"bool", "b8", DKind::Bool, 8, DType::Bool, DType::Bool},
    {"uint8", "u8", DKind::Unsigned, 8, DType::U8, DType::U8},
    {"int8", "i8", DKind::Signed, 8, DType::I8, DType::I8},
    {"uint16", "u16", DKind::Unsigned, 16, DType::U16, DType::U16},
    {"int16", "i16", DKind::Signed, 16, DType::I16, DType::I16},
    {"uint32", "u32", DKind::Unsigned, 32, DType::U32, DType::U32},
    {"int32", "i32", DKind::Signed, 32, DType::I32, DType::I32},
    {"uint64", "u64", DKind::Unsigned, 64, DType::U64, DType::U64},
    {"int64", "i64", DKind::Signed, 64, DType::I64, DType::I64},
    {"float16", "f16", DKind::Float, 16, DType::F32, DType::F16},
    {"bfloat16", "bf16", DKind::Float, 16, DType::F32, DType::BF16},
    {"float32", "f32", DKind::Float, 32, DType::F32, DType::F32},
    {"float64", "f64", DKind::Float, 64, DType::F64, DType::F64},
    {"complex64", "c64", DKind::Complex, 64, DType::C64, DType::F32},
    {"complex128", "c128", DKind::Complex, 128, DType::C128, DType::F64},
};
}  // namespace detail

constexpr const DTypeTraits& traits(DType t) { return detail::kTraits[static_cast<int>(t)]; }
constexpr int64_t itemsize(DType t) { return traits(t).bits / 8; }
constexpr bool is_float(DType t) { return traits(t).kind == DKind::Float; }
constexpr bool is_complex(DType t) { return traits(t).kind == DKind::Complex; }
constexpr bool is_integral(DType t, bool with_bool = false) {
  DKind k = traits(t).kind;
  return k == DKind::Unsigned || k == DKind::Signed || (with_bool && k == DKind::Bool);
}
constexpr bool is_differentiable(DType t) { return is_float(t) || is_complex(t); }
inline std::string_view dtype_name(DType t) { return traits(t).name; }
std::optional<DType> dtype_from_name(std::string_view name);  // "float32", and torch's aliases "float", "half", ...
inline std::ostream& operator<<(std::ostream& out, DType t) { return out << "strata." << dtype_name(t); }

// PyTorch's promotion of two dtypes of the same category rank (dimensioned with dimensioned, and so on).
// Raises where PyTorch has none (uint16 and wider unsigned with signed types).
DType promote_types(DType a, DType b);
bool can_cast(DType from, DType to);  // PyTorch's `can_cast`: the category does not fall

DType default_dtype();  // float32 unless changed
void set_default_dtype(DType t);
DType default_complex_dtype();
constexpr DType to_complex(DType t) { return t == DType::F64 ? DType::C128 : is_complex(t) ? t : DType::C64; }

// The dtypes whose kernels move elements of so many bytes, of any dtype: `dtypes: width` of the table.
constexpr DType kWidthTypes[] = {DType::U8, DType::U16, DType::U32, DType::U64, DType::C128};
constexpr DType dtype_of_width(int64_t bytes) {
  for (DType t : kWidthTypes)
    if (itemsize(t) == bytes) return t;
  return DType::C128;
}
constexpr DType width_dtype(DType t) { return dtype_of_width(itemsize(t)); }

struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};
float to_float(BFloat16 v);
float to_float(Half v);
BFloat16 to_bfloat16(float v);  // round to nearest even; NaN stays NaN
Half to_half(float v);          // round to nearest even; NaN stays NaN

}  // namespace strata
