#include "core/dtype.h"

#include <algorithm>
#include <atomic>

namespace strata {

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == detail::kTraits[i].name) return static_cast<DType>(i);
  struct Alias {
    std::string_view name;
    DType type;
  };
  static constexpr Alias aliases[] = {{"float", DType::F32},  {"double", DType::F64},  {"half", DType::F16},
                                      {"int", DType::I32},    {"long", DType::I64},    {"short", DType::I16},
                                      {"cfloat", DType::C64}, {"cdouble", DType::C128}};
  for (const Alias& a : aliases)
    if (name == a.name) return a.type;
  return std::nullopt;
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const DTypeTraits &ta = traits(a), &tb = traits(b);
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_complex(a) || is_complex(b)) {
    auto part_bits = [](DType t) { return is_complex(t) ? traits(t).bits / 2 : is_float(t) ? int(traits(t).bits) : 0; };
    return std::max(part_bits(a), part_bits(b)) > 32 ? DType::C128 : DType::C64;
  }
  if (is_float(a) && is_float(b)) {
    if (ta.bits == tb.bits) return DType::F32;  // float16 with bfloat16
    return ta.bits > tb.bits ? a : b;
  }
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (ta.kind == tb.kind) return ta.bits > tb.bits ? a : b;
  DType u = ta.kind == DKind::Unsigned ? a : b, s = ta.kind == DKind::Unsigned ? b : a;
  STRATA_CHECK(u == DType::U8, "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", a,
               " and ", b, "; cast one of them with .to() first");
  return s == DType::I8 ? DType::I16 : s;
}

bool can_cast(DType from, DType to) {
  auto rank = [](DType t) { return is_complex(t) ? 3 : is_float(t) ? 2 : t == DType::Bool ? 0 : 1; };
  return rank(from) <= rank(to);
}

namespace {
std::atomic<DType> default_{DType::F32};
}
DType default_dtype() { return default_.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  STRATA_CHECK_TYPE(is_float(t), "set_default_dtype: only floating-point types are supported as the default type, got ",
                    t);
  default_.store(t, std::memory_order_relaxed);
}
DType default_complex_dtype() { return default_dtype() == DType::F64 ? DType::C128 : DType::C64; }

}  // namespace strata
