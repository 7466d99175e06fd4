#include "lower/print/dialect.h"

#include "base/error.h"

namespace strata::lower {

const Dialect c99 = {
    "c99",
    R"C(#include <math.h>
#include <stdint.h>
#include <string.h>
typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef float f32;
typedef double f64;
typedef int bit;
static inline i32 bits_i32(f32 x) { i32 r; memcpy(&r, &x, sizeof r); return r; }
static inline u32 bits_u32(f32 x) { u32 r; memcpy(&r, &x, sizeof r); return r; }
static inline f32 bits_f32(u32 x) { f32 r; memcpy(&r, &x, sizeof r); return r; }
static inline i64 bits_i64(f64 x) { i64 r; memcpy(&r, &x, sizeof r); return r; }
static inline u64 bits_u64(f64 x) { u64 r; memcpy(&r, &x, sizeof r); return r; }
static inline f64 bits_f64(u64 x) { f64 r; memcpy(&r, &x, sizeof r); return r; }
)C",
    "void ",
    "",
    "static",
    {{"sqrtf", "sqrt"},
     {"floorf", "floor"},
     {"ceilf", "ceil"},
     {"truncf", "trunc"},
     {"rintf", "rint"},
     {"fmaf", "fma"}},
    {"INFINITY", "(f64)INFINITY"},
    {"NAN", "(f64)NAN"},
};

namespace {

const std::string hinted_head = std::string(c99.head) + R"C(#define SELDOM(c) __builtin_expect(c, 0)
#define AHEAD(p) __builtin_prefetch(p)
#ifdef __clang__
#define ANY_ORDER _Pragma("clang loop vectorize(assume_safety) interleave_count(1) unroll(disable)")
#define BACKWARDS _Pragma("clang loop vectorize(assume_safety) interleave_count(2) unroll(disable)")
#define EACH_LANE _Pragma("clang loop vectorize(disable) unroll(full)")
#else
#define ANY_ORDER _Pragma("GCC ivdep")
#define BACKWARDS ANY_ORDER
#define EACH_LANE
#endif
)C";

Dialect hinted() {
  Dialect d = c99;
  d.head = hinted_head.c_str();
  d.any_order = "ANY_ORDER";
  d.backwards = "BACKWARDS";
  d.each_lane = "EACH_LANE";
  d.seldom = "SELDOM";
  d.ahead = "AHEAD";
  d.on_line = " __attribute__((aligned(64)))";
  d.apart = "restrict ";
  return d;
}

}  // namespace

const Dialect hinted_c = hinted();

const Dialect& dialect(const std::string& name) {
  if (name == c99.name) return c99;
  throw_error(ErrorKind::Value, str_cat("dialect: expected c99, got '", name, "'"));
}

}  // namespace strata::lower
