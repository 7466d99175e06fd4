// The fixed C text at the top of a printed file: types and the helpers that its kernels name. A helper `what_<type>` is
// one template here, written for a lane type E, its vector VT (or E itself) and the integer vector M of its masks.
#include <algorithm>
#include <functional>

#include "lower/print/helpers.h"
#include "lower/print/print_c.h"

namespace strata::lower {
namespace {

const char* const kHead = R"C(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;
typedef int bit;

typedef void (*StrataPointwiseFn)(char* const* ptr, const i64* step, const void* params, i64 blocks, i64 flags,
                                  i32* status);
typedef struct StrataRowArgs {
  char* const* ptr;
  const void* params;
  const void* reduced;
  char* const* scratch;
  void* partial;
  i64 count, first, length;
  i32* status;
  const i64* next;
} StrataRowArgs;
typedef void (*StrataRowFn)(const StrataRowArgs* args);
typedef struct StrataColumnArgs {
  char* const* ptr;
  const i64* step;
  const void* params;
  void* to;
  const void* lower;
  i64 lowers, apart, columns, rows, jump, length, tree, begins;
} StrataColumnArgs;
typedef void (*StrataColumnsFn)(const StrataColumnArgs* args);
typedef struct StrataAcrossArgs {
  char* const* ptr;
  const i64* step;
  const void* params;
  i64 columns, length, first, elements;
} StrataAcrossArgs;
typedef void (*StrataAcrossFn)(const StrataAcrossArgs* args);
typedef struct StrataReduction { u8 combine, accumulator; } StrataReduction;
typedef struct StrataRowPass {
  StrataRowFn fn;
  u8 reductions, elementwise, trees, plain;
  u16 broadcast, reads;
  StrataColumnsFn columns;
  StrataAcrossFn across;
} StrataRowPass;
typedef struct StrataKernelEntry {
  const char* name;
  u8 dtype, kind, outputs, inputs, scalars, scratch_rows, passes, reductions, sets_status, together, held, row_forms, row_values, costly, local_rows;
  StrataPointwiseFn pointwise;
  const StrataRowPass* pass;
  const StrataReduction* reduction;
  const u8* output_dtype;
  const u8* per_row;
} StrataKernelEntry;
typedef struct StrataKernelFile { const StrataKernelEntry* entries; i64 count; } StrataKernelFile;

#ifndef LANES
#define LANES 16
#endif
#define INLINE static inline __attribute__((always_inline))
#define RARELY(c) __builtin_expect(!!(c), 0)
#define BITS(T, x) ({ __typeof__(x) from_ = (x); T to_; __builtin_memcpy(&to_, &from_, sizeof to_); to_; })
#define bits_u32(x) BITS(u32, x)
#define bits_u64(x) BITS(u64, x)
#define bits_f32(x) BITS(f32, x)
#define bits_f64(x) BITS(f64, x)
#define CONVERT(T, v) __builtin_convertvector(v, T)
#define LOAD(T, p) (*(const T##_u*)(p))
#define EACH_LANE(T, f, a, b, n) ({ const T a_ = (a), b_ = (b); T r_ = SPLAT(T, 0); each_##f##_##T(&r_, &a_, &b_, n, status); r_; })
#ifdef __clang__
#define ANY_LANES(n) __attribute__((ext_vector_type(n)))
#define SPLAT(T, x) ((T)(T##_x)(x)) // of (T){0} Clang inserts lane by lane: a fifth of its time
#define STREAM(T, p, v) __builtin_nontemporal_store(v, (T##_s*)(p))
#define ANY_ORDER _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#define IN_ORDER _Pragma("clang loop vectorize(disable) unroll(disable)")
#define WHOLLY _Pragma("clang loop unroll(full)")
#else
#define ANY_LANES(n)
#define SPLAT(T, x) ((x) - (T){0})
#define STREAM(T, p, v) (*(T##_s*)(p) = (v))
#define ANY_ORDER _Pragma("GCC ivdep")
#define IN_ORDER
#define WHOLLY _Pragma("GCC unroll 8")
#endif
// What fits in no register then lies at a page's end. Constants lie at a page's begin: where a load has an address whose
// last 12 bits are those of a store before it, it waits for that.
#define FRAME char frame_[64] __attribute__((aligned(4096))); __asm__ volatile("" : : "r"(frame_));
#define FETCH(p, lines) do { for (int l_ = 0; l_ < (lines); l_++) __builtin_prefetch((p) + 64 * l_, 0, 3); } while (0)
#define STORE(T, p, v) do { if (stream) STREAM(T, p, v); else *(T##_u*)(p) = (v); } while (0)
#ifdef WIDE
#define TO_16(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14, n + 15
#define JOIN(a, b) __builtin_shufflevector(a, b, TO_16(0), TO_16(16))
#define JOIN2(a, b) __builtin_shufflevector(a, b, TO_16(0), TO_16(16), TO_16(32), TO_16(48))
#define LOADS_32(T, p, s) JOIN(LOAD(T, p), LOAD(T, (p) + second * (s)))
#define LOADS_64(T, p, s) JOIN2(LOADS_32(T, p, s), JOIN(LOAD(T, (p) + third * (s)), LOAD(T, (p) + fourth * (s))))
#define STORES_32(T, p, s, v) do { STORE(T, p, __builtin_shufflevector(v, v, TO_16(0))); STORE(T, (p) + second * (s), __builtin_shufflevector(v, v, TO_16(16))); } while (0)
#define STORES_64(T, p, s, v) do { STORES_32(T, p, s, v); STORE(T, (p) + third * (s), __builtin_shufflevector(v, v, TO_16(32))); STORE(T, (p) + fourth * (s), __builtin_shufflevector(v, v, TO_16(48))); } while (0)
#endif
)C";

struct Template {
  const char* name;
  const char* needs;  // helpers of the same type, "." before a name: of the lane type
  const char* text;
};

// E: lane type; VT: its vector; M: vector of integers of that width; U: unsigned lane type; B: builtin's suffix.
const Template kVector[] = {
    {"select", "", "#define select_$V(m, a, b) (($V)((($M)(a) & (m)) | (($M)(b) & ~(m))))\n"},
    {"any", "", R"C(#ifdef __clang__
#define any_$V(m) (__builtin_reduce_or(m) != 0)
#else
INLINE bit any_$V($V m) {
  $E r = 0;
  for (int k = 0; k < LANES; k++) r |= m[k];
  return r != 0;
}
#endif
)C"},
    {"fma", "", R"C(#ifdef __clang__
#define fma_$V(a, b, c) __builtin_elementwise_fma(a, b, c)
#else
INLINE $V fma_$V($V a, $V b, $V c) {
  $V r;
  for (int k = 0; k < LANES; k++) r[k] = __builtin_fma$B(a[k], b[k], c[k]);
  return r;
}
#endif
)C"},
    {"max", "select", "#define max_$V(a, b) ({ const $V a_ = (a), b_ = (b); select_$V(b_ > a_, b_, a_); })\n"},
    {"min", "select", "#define min_$V(a, b) ({ const $V a_ = (a), b_ = (b); select_$V(b_ < a_, b_, a_); })\n"},
    {"max_or_nan", "select",
     "#define max_or_nan_$V(a, b) ({ const $V a_ = (a), b_ = (b); select_$V((b_ > a_) | (b_ != b_), b_, a_); })\n"},
    {"min_or_nan", "select",
     "#define min_or_nan_$V(a, b) ({ const $V a_ = (a), b_ = (b); select_$V((b_ < a_) | (b_ != b_), b_, a_); })\n"},
    {"add", "", "#define add_$V(a, b) ((a) + (b))\n"},
    {"mul", "", "#define mul_$V(a, b) ((a) * (b))\n"},
    {"or", "", "#define or_$V(a, b) ((a) | (b))\n"},
    {"and", "", "#define and_$V(a, b) ((a) & (b))\n"},
    {"load", "", R"C(#ifdef MASKS
INLINE $V load_$V(const $E* p, i64 left) {
  if (RARELY(left < 16)) return THOSE_$W($V, p, FIRST(left));
  return LOAD($V, p);
}
INLINE $V those_$V(const $E* p, u64 here) { return THOSE_$W($V, p, here); }
#else
static __attribute__((noinline)) $V part_$V(const $E* p, i64 left) {
#ifdef PART_$W
  return PART_$W($V, p, left);
#else
  $V r = SPLAT($V, 0);
  for (i64 k = 0; k < left; k++) (($E*)&r)[k] = p[k];
  return r;
#endif
}
INLINE $V load_$V(const $E* p, i64 left) {
  if (RARELY(left < 16)) return part_$V(p, left);
  return LOAD($V, p);
}
#endif
)C"},
    {"store", "", R"C(#ifdef MASKS
INLINE void store_$V($E* p, $V v, i64 left) {
  if (RARELY(left < 16))
    STORE_THOSE_$W(p, v, FIRST(left));
  else
    *($V_u*)p = v;
}
INLINE void store_those_$V($E* p, $V v, u64 here) { STORE_THOSE_$W(p, v, here); }
#else
static __attribute__((noinline)) void store_part_$V($E* p, $V v, i64 left) {
  for (i64 k = 0; k < left; k++) p[k] = ((const $E*)&v)[k];
}
INLINE void store_$V($E* p, $V v, i64 left) {
  if (RARELY(left < 16))
    store_part_$V(p, v, left);
  else
    *($V_u*)p = v;
}
#endif
)C"},
    {"load_pairs", "", R"C(INLINE $V load_pairs_$V(const void* p, i64 left) {
  $V r = SPLAT($V, 0);
  for (int k = 0; k < LANES; k++)
    if (k < left) r[k] = ((const $E*)p)[2 * k];
  return r;
}
)C"},
    {"store_pairs", "", R"C(INLINE void store_pairs_$V(void* p, $V v, i64 left) {
  for (int k = 0; k < LANES; k++)
    if (k < left) (($E*)p)[2 * k] = v[k];
}
)C"},
};

const Template kScalar[] = {
    {"fma", "", "#define fma_$E(a, b, c) __builtin_fma$B(a, b, c)\n"},
    {"max", "", "#define max_$E(a, b) ((b) > (a) ? (b) : (a))\n"},
    {"min", "", "#define min_$E(a, b) ((b) < (a) ? (b) : (a))\n"},
    {"max_or_nan", "", "#define max_or_nan_$E(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))\n"},
    {"min_or_nan", "", "#define min_or_nan_$E(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))\n"},
    {"add", "", "#define add_$E(a, b) ((a) + (b))\n"},
    {"mul", "", "#define mul_$E(a, b) ((a) * (b))\n"},
    {"or", "", "#define or_$E(a, b) ((a) | (b))\n"},
    {"and", "", "#define and_$E(a, b) ((a) & (b))\n"},
};

// The 16 values of a vector, or of 16 neighbours, as one: by bits 3 to 0 of their positions.
const char* const kLanesVector = R"C(INLINE $E lanes_$C_$V($V v) {
  v = $C_$V(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
  v = $C_$V(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7));
  v = $C_$V(v, __builtin_shufflevector(v, v, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3));
  return $C_$E(v[0], v[1]);
}
)C";
const char* const kLanesScalar = R"C(static inline $E lanes_$C_$E($E* a) {
  for (int h = 8; h; h /= 2)
    for (int l = 0; l < h; l++) a[l] = $C_$E(a[l], a[l + h]);
  return a[0];
}
)C";

// A helper of one lane over the first n lanes of vectors: those beyond the end of a row must not set the status.
const char* const kEach =
    R"C(static __attribute__((noinline)) void each_$C_$V($V* r, const $V* a, const $V* b, i64 n, i32* status) {
  for (int k = 0; k < LANES && k < n; k++) (($E*)r)[k] = $C_$E(((const $E*)a)[k], ((const $E*)b)[k]$S);
}
)C";

// Tree T's positions as one: `groups` of 16 by bits 4 to 9, then lanes. Eight vectors at a time stay in registers.
const char* const kFoldVector = R"C(INLINE void pairs_$C_$V($V* a, i64 n) {
  for (i64 w = 1; w < n; w *= 2)
    for (i64 k = 0; k + w < n; k += 2 * w) a[k] = $C_$V(a[k], a[k + w]);
}
static __attribute__((noinline)) $E fold_$C_$V($V* a, i64 groups) {
  if (groups == 4) return lanes_$C_$V($C_$V($C_$V(a[0], a[1]), $C_$V(a[2], a[3])));
  $V part[8];
  i64 n = 0;
  for (; groups > 0; groups -= 8, a += 8, n++) {
    if (groups < 8) {
      pairs_$C_$V(a, groups);
      part[n] = a[0];
      continue;
    }
    const $V p = $C_$V(a[0], a[1]), q = $C_$V(a[2], a[3]), r = $C_$V(a[4], a[5]), s = $C_$V(a[6], a[7]);
    const $V t = $C_$V(p, q), u = $C_$V(r, s);
    part[n] = $C_$V(t, u);
  }
  pairs_$C_$V(part, n);
  return lanes_$C_$V(part[0]);
}
)C";
const char* const kFoldScalar = R"C(static __attribute__((noinline)) $E fold_$C_$E($E* a, i64 groups) {
  for (i64 w = 1; w < groups; w *= 2)
    for (i64 k = 0; k + w < groups; k += 2 * w)
      for (int l = 0; l < 16; l++) a[16 * k + l] = $C_$E(a[16 * k + l], a[16 * (k + w) + l]);
  return lanes_$C_$E(a);
}
)C";

// Products of complex values over the positions that are present.
const char* const kFoldComplex =
    R"C(static __attribute__((noinline)) void fold_complex_$E($E* re, $E* im, i64 count, $E* slot) {
  static const short bit_value[] = {16, 32, 64, 128, 256, 512, 8, 4, 2, 1};
  i64 n = count < 1024 ? count : 1024;
  for (int b = 0; b < 10; b++)
    for (i64 k = 0, w = bit_value[b]; k + w < n; k++) {
      if (b < 6 ? k & (2 * w - 16) : k >= w) continue;
      $E x = re[k], y = im[k];
      re[k] = x * re[k + w] - y * im[k + w];
      im[k] = x * im[k + w] + y * re[k + w];
    }
  slot[0] = re[0];
  slot[1] = im[0];
}
)C";

// Whether a lane of several vectors side by side is `first` or of the next `count`.
const char* const kAnyWithin = R"C(INLINE bit any_within_$V($V a, $E first, $E count) {
  const $V from = a - first;
  v$E least = ((const v$E_u*)&from)[0];
  WHOLLY
  for (int k = 1; k < LANES / 16; k++) least = min_v$E(least, ((const v$E_u*)&from)[k]);
  return any_v$I(least <= count);
}
)C";

// The first of equals over four vectors that hold their lanes' best values and the indices of these; NaN beats all.
const char* const kFoldArg =
    R"C(static __attribute__((noinline))
void fold_$C_$V(const $V* best, const $I* where, i64 first, void* slot) {
  $V v = best[0];
  $I at = where[0];
  for (int k = 1; k < 4; k++) {
    const $V b = best[k];
    const $M better = (b $O v) | ((b != b) & (v == v)), equal = (b == v) | ((b != b) & (v != v));
    const $I take = CONVERT($I, better) | (CONVERT($I, equal) & (where[k] < at));
    v = select_$V(CONVERT($M, take), b, v);
    at = (at & ~take) | (where[k] & take);
  }
  int r = 0;
  for (int k = 1; k < 16; k++)
    if (v[k] $O v[r] || (v[k] != v[k] && v[r] == v[r]) ||
        ((v[k] == v[r] || (v[k] != v[k] && v[r] != v[r])) && at[k] < at[r]))
      r = k;
  *($E*)slot = v[r];
  *(i64*)((char*)slot + 8) = first + at[r];
}
)C";

std::string replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

int width(const std::string& e) { return std::stoi(e.substr(1)); }

// A type's name begins with its kind: "v" has LANES lanes, "x" 32 and "w" 64 of them.
std::string lanes_of(char kind) { return kind == 'w' ? "64" : kind == 'x' ? "32" : "LANES"; }

std::string fill(std::string text, const std::string& e, char kind = 'v') {
  std::string w = std::to_string(width(e));
  text = replace(text, "LANES", lanes_of(kind));
  text = replace(text, "$V", kind + e);
  text = replace(text, "$E", e);
  text = replace(text, "$M", kind + ("i" + w));
  text = replace(text, "$U", "u" + w);
  text = replace(text, "$W", w);
  return replace(text, "$B", e == "f32" ? "f" : "");
}

std::string vector_type(const std::string& name) {
  const std::string e = name.substr(1), element = std::to_string(width(e) / 8);
  const std::string lanes = lanes_of(name[0]), size = lanes + " * " + element;
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return std::toupper(c); });
  return (e == "f16" ? "typedef _Float16 f16;\n" : "") + std::string("typedef ") + e + " " + name +
         " __attribute__((vector_size(" + size + ")));\n" + "typedef " + e + " " + name +
         "_u __attribute__((vector_size(" + size + "), aligned(" + element + "), may_alias));\n" + "typedef " + e +
         " " + name + "_s __attribute__((vector_size(" + size + "), aligned(" + size + " < 64 ? " + size +
         " : 64), may_alias));\n" + "typedef " + e + " " + name + "_x ANY_LANES(" + lanes + ");\n" + "#define " +
         upper + "(x) SPLAT(" + name + ", x)\n";
}

// Writes helpers, those they need first.
class Prelude {
 public:
  void add(const std::string& name) {
    if (!done_.insert(name).second) return;
    size_t cut = name.rfind('_');
    if (cut == std::string::npos) return;  // a type
    if (name == "f16_to_f32" || name == "f32_to_f16") {
      text_ += half_function(name);
      return;
    }
    std::string what = name.substr(0, cut), t = name.substr(cut + 1);
    const char kind = t[0];
    bool vector = kind == 'v' || kind == 'w' || kind == 'x';
    std::string e = vector ? t.substr(1) : t;
    if (vector) {
      types_.insert(t);
      types_.insert(kind + ("i" + std::to_string(width(e))));
    }
    if (what == "lanes") {
      text_ += "static const v" + e + " LANES_v" + e + " = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};\n";
      return;
    }
    if (what.substr(0, 5) == "each_") {
      std::string helper = what.substr(5);
      add(helper + "_" + e);
      bool status = e[0] != 'f' && helper != "pow";
      text_ += fill(replace(replace(kEach, "$C", helper), "$S", status ? ", status" : ""), e);
      return;
    }
    if (what == "any_within") {
      const std::string mask = "i" + std::to_string(width(e));
      add("min_v" + e);
      add("any_v" + mask);
      text_ += fill(replace(kAnyWithin, "$I", mask), e, kind);
      return;
    }
    if (what == "fold_complex") {
      text_ += fill(kFoldComplex, e);
      return;
    }
    if (what.substr(0, 5) == "fold_" || what.substr(0, 6) == "lanes_") return fold(what, e, vector);
    if (what == "sqrt" || what == "floor" || what == "ceil" || what == "trunc" || what == "rint")
      return unary(what, e, vector, kind);
    if ((what == "load" || what == "store") && vector && !ends_) {
      ends_ = true;
      text_ += kRowEnds;
    }
    auto need = [&](const std::string& list) {
      for (size_t b = 0; b < list.size();) {
        size_t end = std::min(list.find(',', b), list.size());
        add(list.substr(b, end - b) + "_" + t);
        b = end + 1;
      }
    };
    auto write = [&](const Template& t) {
      need(t.needs);
      text_ += fill(t.text, e, kind);
    };
    if (const ScalarHelper* h = vector ? nullptr : scalar_helper(what)) {
      need(h->needs);
      text_ += "static inline " + scalar_helper_text(*h, e);
      return;
    }
    if (vector) {
      for (const Template& t : kVector)
        if (what == t.name) return write(t);
    } else {
      for (const Template& t : kScalar)
        if (what == t.name) return write(t);
    }
    STRATA_INTERNAL(false, "no helper ", name);
  }

  std::string text(const std::set<std::string>& needs) {
    for (const std::string& n : needs) {
      if (n.find('_') == std::string::npos)
        types_.insert(n);
      else
        add(n);
    }
    std::string types;
    for (const std::string& t : types_) types += vector_type(t);
    return kHead + types + text_ + "\n";
  }

 private:
  void unary(const std::string& what, const std::string& e, bool vector, char kind) {
    std::string scalar = "__builtin_" + what + (e == "f32" ? "f" : "");
    if (!vector) {
      text_ += "#define " + what + "_" + e + "(x) " + scalar + "(x)\n";
      return;
    }
    text_ +=
        fill("#ifdef __clang__\n#define " + what + "_$V(x) __builtin_elementwise_" + what + "(x)\n#else\nINLINE $V " +
                 what + "_$V($V a) {\n  $V r;\n  for (int k = 0; k < LANES; k++) r[k] = " + scalar +
                 "(a[k]);\n  return r;\n}\n#endif\n",
             e, kind);
  }

  void fold(const std::string& what, const std::string& e, bool vector) {
    std::string combine = what.substr(what.find('_') + 1), of_type = (vector ? "_v" : "_") + e, text;
    if (combine.substr(0, 3) == "arg") {
      add("select" + of_type);
      std::string index = width(e) == 64 ? "i64" : "i32";
      types_.insert("v" + index);
      text = replace(replace(kFoldArg, "$I", "v" + index), "$O", combine == "argmax" ? ">" : "<");
    } else if (what[0] == 'l') {
      add(combine + "_" + e);
      add(combine + of_type);
      text = vector ? kLanesVector : kLanesScalar;
    } else {
      add("lanes_" + combine + of_type);
      text = vector ? kFoldVector : kFoldScalar;
    }
    text_ += fill(replace(text, "$C", combine), e);
  }

  std::string text_;
  bool ends_ = false;
  std::set<std::string> done_, types_;
};

}  // namespace

std::string Needs::function(const std::string& text) {
  const auto found = std::ranges::find(functions, text);
  const size_t at = size_t(found - functions.begin());
  if (found == functions.end()) functions.push_back(text);
  return "rare_lanes_" + std::to_string(at);
}

std::string prelude(const Needs& needs) {
  std::string text = Prelude().text(needs.helpers);
  for (size_t i = 0; i < needs.functions.size(); ++i)
    text += "static __attribute__((noinline, cold)) void rare_lanes_" + std::to_string(i) + needs.functions[i] + "\n";
  return text;
}

}  // namespace strata::lower
