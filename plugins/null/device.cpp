// The table of the null device, its dialect, and how it compiles.
#include <cstdlib>

#include "null.h"

namespace null {

namespace {

thread_local std::string error;
const StrataHost* host = nullptr;

StrataStatus compile(int32_t, const char* text, StrataModule* module) {
  char why[4096] = "";
  void* program = nullptr;
  const StrataStatus status = host->compile(text, &program, why, sizeof why);
  if (status != STRATA_OK) return fail(status, why);
  *module = reinterpret_cast<StrataModule>(program);
  return STRATA_OK;
}

StrataStatus module_release(StrataModule module) {
  host->release(module);
  return STRATA_OK;
}

StrataStatus kernel(StrataModule module, const char* entry, StrataKernel* out) {
  void* found = host->symbol(module, entry);
  if (!found) return fail(STRATA_INVALID, std::string("the text has no entry point ") + entry);
  *out = reinterpret_cast<StrataKernel>(found);
  return STRATA_OK;
}

// The host's compiler keeps its programs itself.
const char* identity(int32_t) { return "the host's compiler"; }

const StrataDialect dialect = {
    sizeof(StrataDialect),
    1,
    "C",
    R"C(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;
typedef int bit;
#define INT64_C(x) x##l
#define UINT64_C(x) x##ul
static inline i32 bits_i32(f32 x) { i32 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
static inline u32 bits_u32(f32 x) { u32 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
static inline f32 bits_f32(u32 x) { f32 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
static inline i64 bits_i64(f64 x) { i64 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
static inline u64 bits_u64(f64 x) { u64 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
static inline f64 bits_f64(u64 x) { f64 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
static inline void or_status(i32* status, i32 bits) { __atomic_fetch_or(status, bits, __ATOMIC_RELAXED); }
)C",
    "static void ",
    "void ",
    "",
    "static",
    {{"__builtin_sqrtf", "__builtin_sqrt"},
     {"__builtin_floorf", "__builtin_floor"},
     {"__builtin_ceilf", "__builtin_ceil"},
     {"__builtin_truncf", "__builtin_trunc"},
     {"__builtin_rintf", "__builtin_rint"},
     {"__builtin_fmaf", "__builtin_fma"}},
    {"__builtin_inff()", "__builtin_inf()"},
    {"__builtin_nanf(\"\")", "__builtin_nan(\"\")"},
    "",
    "",
    "or_status",
    "",
    "",
    "restrict ",
    16,
    "void ",
    "",
    "((void (*)(void))scratch[-1])();",
    "",
    "",
    "",
    "",
};

const StrataDevice table = {
    sizeof(StrataDevice),
    STRATA_SDK_MAJOR,
    STRATA_SDK_MINOR,
    "null",
    "0.1",
    &dialect,
    last_error,
    devices,
    allocate,
    release,
    queue_create,
    queue_destroy,
    synchronize,
    upload,
    download,
    copy,
    compile,
    module_release,
    kernel,
    launch,
    offers,
    identity,
    nullptr,
    nullptr,
    event_create,
    event_destroy,
    event_record,
    event_wait,
    event_query,
    event_synchronize,
    event_elapsed,
};

}  // namespace

StrataStatus fail(StrataStatus status, std::string why) {
  error = std::move(why);
  return status;
}

const char* last_error() { return error.c_str(); }

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace null

extern "C" __attribute__((visibility("default"))) const StrataDevice* strata_device_v0(const StrataHost* host, char*,
                                                                                       uint64_t) {
  null::host = host;
  return &null::table;
}
