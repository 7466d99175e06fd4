// The text is assembled from small templates in which @name@ stands for a value; see fill().
#include "lower/print/gemm.h"

#include <algorithm>
#include <utility>

#include "lower/print/print_c.h"

namespace strata::lower {
namespace {

using Values = std::vector<std::pair<std::string_view, std::string>>;

std::string fill(std::string_view pattern, const Values& values) {
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    size_t open = pattern.find('@', at);
    size_t close = open == pattern.npos ? open : pattern.find('@', open + 1);
    if (close == pattern.npos) return out.append(pattern.substr(at));
    out.append(pattern.substr(at, open - at));
    std::string_view name = pattern.substr(open + 1, close - open - 1);
    for (const auto& [key, value] : values) {
      if (key == name) out.append(value);
    }
    at = close + 1;
  }
  return out;
}

std::string number(int64_t n) { return std::to_string(n); }

// Types in which chains run, and what one level does with them.
struct Compute {
  const char* name;      // in kernel names
  const char* scalar;    // C type
  int bytes;             // of the scalar
  int parts;             // 2 for complex
  const char* base_fma;  // one-lane spelling
};

constexpr Compute computes[] = {
    {"f32", "float", 4, 1, "__builtin_fmaf(a, b, c)"}, {"f64", "double", 8, 1, "__builtin_fma(a, b, c)"},
    {"u32", "u32", 4, 1, "((a) * (b) + (c))"},         {"u64", "u64", 8, 1, "((a) * (b) + (c))"},
    {"c64", "float", 4, 2, "__builtin_fmaf(a, b, c)"}, {"c128", "double", 8, 2, "__builtin_fma(a, b, c)"},
};

// How a storage type becomes its compute type and back.
struct Storage {
  const char* name;     // DTypeTraits cname
  const char* type;     // C type of one part
  int bytes;            // of one element
  const char* compute;  // name of a Compute
  const char* load;     // expression of x
  const char* store;    // expression of x, or null: stored as computed
  const char* one;      // initialiser of the element 1
};

constexpr Storage storages[] = {
    {"f32", "float", 4, "f32", "x", nullptr, "1"},
    {"f64", "double", 8, "f64", "x", nullptr, "1"},
    {"bf16", "u16", 2, "f32", "bf16_to_f32(x)", "f32_to_bf16(x)", "0x3f80"},
    {"f16", "u16", 2, "f32", "f16_to_f32(x)", "f32_to_f16(x)", "0x3c00"},
    {"i64", "u64", 8, "u64", "x", nullptr, "1"},
    {"i32", "u32", 4, "u32", "x", nullptr, "1"},
    {"i16", "__INT16_TYPE__", 2, "u32", "(u32)x", "(u16)x", "1"},
    {"i8", "signed char", 1, "u32", "(u32)x", "(u8)x", "1"},
    {"u8", "u8", 1, "u32", "(u32)x", "(u8)x", "1"},
    {"c64", "float", 8, "c64", "x", nullptr, "1, 0"},
    {"c128", "double", 16, "c128", "x", nullptr, "1, 0"},
};

const Compute& compute_named(std::string_view name) {
  for (const Compute& c : computes) {
    if (c.name == name) return c;
  }
  throw_error(ErrorKind::Internal, str_cat("print_gemm: no compute type ", name));
}

const Storage& storage_named(std::string_view name) {
  for (const Storage& s : storages) {
    if (s.name == name) return s;
  }
  throw_error(ErrorKind::Value, str_cat("print_gemm: dtype ", name, " has no matrix product"));
}

// The register tile: panel heights and widths (in vectors) for which a body is printed, ascending. The largest make the
// full tile; the others serve the edges, where a full tile would waste most of its work.
struct Tile {
  int lanes;
  std::vector<int> heights, widths;
};

Tile tile_of(GemmLevel level, const Compute& c) {
  if (level == GemmLevel::base) return c.parts == 2 ? Tile{1, {1, 2}, {1, 2}} : Tile{1, {1, 2, 4}, {1, 2, 3, 4}};
  int lanes = (level == GemmLevel::v4 ? 64 : 32) / c.bytes;
  if (level == GemmLevel::v4)
    return c.parts == 2 ? Tile{lanes, {1, 2, 4}, {1, 2}} : Tile{lanes, {1, 2, 4, 8}, {1, 2, 3}};
  return c.parts == 2 ? Tile{lanes, {1, 2}, {1, 2}} : Tile{lanes, {1, 2, 4}, {1, 2, 3}};
}  // every multiple of the lanes is a width: the driver relies on it to read b in place

constexpr std::string_view prologue = R"(/* Matrix products: chains of 1,024 fma in order of k, chains added in order.
   A panel holds up to a tile's height (width) of rows (columns), k after k, filled up with zeros. */
typedef __INT64_TYPE__ i64;
typedef __UINT64_TYPE__ u64;
typedef __UINT32_TYPE__ u32;
typedef __UINT16_TYPE__ u16;
typedef __UINT8_TYPE__ u8;
typedef void gemm_pack_fn(i64 kc, i64 count, const void *from, i64 count_stride, i64 k_stride, void *to);
typedef void gemm_kernel_fn(i64 kc, const void *a, const void *b, i64 b_step, void *c, i64 ldc, i64 rows, i64 cols,
                            i64 add);
typedef void gemm_round_fn(i64 rows, i64 cols, const void *from, i64 ld_from, void *to, i64 ld_to);
struct gemm_table {
  i64 mr, nr, lanes, element_bytes, compute_bytes, plain;
  const void *one;
  gemm_pack_fn *pack_a, *pack_b;
  gemm_kernel_fn *kernel;
  gemm_round_fn *round;
};
)";

// What half_function's text names.
constexpr std::string_view half_types = R"(
typedef float f32;
typedef int i32, bit;
#define BITS(T, x) ({ __typeof__(x) from_ = (x); T to_; __builtin_memcpy(&to_, &from_, sizeof to_); to_; })
)";

// Clang splits 64-byte vectors at x86-64-v4 unless the function asks for their width.
constexpr std::string_view vector_types = R"(
typedef @scalar@ v_@c@ __attribute__((vector_size(@bytes@)));
typedef @scalar@ vu_@c@ __attribute__((vector_size(@bytes@), aligned(@align@), may_alias));
#define SPLAT_@c@(x) (v_@c@){@splat@}
#ifdef __clang__
#define FMA_@c@(a, b, c) @clang_fma@
#define WIDE_@c@ __attribute__((min_vector_width(@bits@)))
#else
#define FMA_@c@(a, b, c) @gcc_fma@
#define WIDE_@c@
#endif
)";

constexpr std::string_view scalar_types = R"(
typedef @scalar@ v_@c@;
typedef @scalar@ vu_@c@;
#define SPLAT_@c@(x) (x)
#define FMA_@c@(a, b, c) @base_fma@
#define WIDE_@c@
)";

std::string print_types(GemmLevel level, const Compute& c, const Tile& tile) {
  std::string vector = c.name;
  if (level == GemmLevel::base) {
    return fill(scalar_types, {{"scalar", c.scalar}, {"c", c.name}, {"base_fma", c.base_fma}});
  }
  std::string splat = "x";
  for (int i = 1; i < tile.lanes; ++i) splat += ", x";
  bool real = std::string_view(c.scalar) == "float" || std::string_view(c.scalar) == "double";
  const char* suffix = c.bytes == 4 ? "ps" : "pd";
  std::string gcc = level == GemmLevel::v4
                        ? std::string("(v_@c@)__builtin_ia32_vfmadd") + suffix + "512_mask(a, b, c, -1, 4)"
                        : std::string("(v_@c@)__builtin_ia32_vfmadd") + suffix + "256(a, b, c)";
  return fill(vector_types, {{"scalar", c.scalar},
                             {"c", c.name},
                             {"bytes", number(tile.lanes * c.bytes)},
                             {"bits", number(tile.lanes * c.bytes * 8)},
                             {"align", number(c.bytes)},
                             {"splat", splat},
                             {"clang_fma", real ? "__builtin_elementwise_fma(a, b, c)" : "((a) * (b) + (c))"},
                             {"gcc_fma", real ? fill(gcc, {{"c", c.name}}) : "((a) * (b) + (c))"}});
}

// "return 1 for n <= 1, 2 for n <= 2, ...": the printed size of a panel that holds n rows or columns.
std::string print_choice(const std::vector<int>& sizes, int unit) {
  std::string out;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    out += "n <= " + number(sizes[i] * unit) + " ? " + number(sizes[i] * unit) + " : ";
  }
  return out + number(sizes.back() * unit);
}

std::string acc(int part, int row, int vec) { return std::string(part ? "i" : "c") + number(row) + "_" + number(vec); }

// One body: a tile of `rows` x `vecs` vectors accumulated over kc, then stored to t, whose rows are ld apart, or (add)
// added there. Partial tiles, and complex ones, go to C through a local tile.
std::string print_body(const Compute& c, const Tile& tile, int rows, int vecs) {
  int width = vecs * tile.lanes;
  std::string t = fill(
      "\nWIDE_@c@ static void @c@_tile_@r@x@v@(i64 kc, const @s@ *a, const @s@ *b, i64 b_step, @s@ *t, i64 ld, "
      "i64 add) {\n",
      {{"c", c.name}, {"s", c.scalar}, {"r", number(rows)}, {"v", number(vecs)}});
  for (int p = 0; p < c.parts; ++p) {
    for (int i = 0; i < rows; ++i) {
      t += fill("  v_@c@ ", {{"c", c.name}});
      for (int j = 0; j < vecs; ++j) t += acc(p, i, j) + " = SPLAT_" + c.name + "(0)" + (j + 1 < vecs ? ", " : ";\n");
    }
  }
  t += "  for (i64 k = 0; k < kc; ++k) {\n";
  for (int p = 0; p < c.parts; ++p) {
    for (int j = 0; j < vecs; ++j) {
      t += fill(
          "    v_@c@ @n@ = *(const vu_@c@ *)(b + @at@);\n",
          {{"c", c.name}, {"n", std::string(p ? "d" : "b") + number(j)}, {"at", number(p * width + j * tile.lanes)}});
    }
  }
  for (int i = 0; i < rows; ++i) {
    t += fill("    v_@c@ a@i@ = SPLAT_@c@(a[@i@]);\n", {{"c", c.name}, {"i", number(i)}});
    if (c.parts == 2) {
      t += fill("    v_@c@ e@i@ = SPLAT_@c@(a[@k@]), n@i@ = -e@i@;\n",
                {{"c", c.name}, {"i", number(i)}, {"k", number(rows + i)}});
    }
    auto fma = [&](int part, int j, std::string left, std::string right) {
      std::string name = acc(part, i, j);
      t +=
          "    " + name + " = FMA_" + c.name + "(" + left + number(i) + ", " + right + number(j) + ", " + name + ");\n";
    };
    for (int j = 0; j < vecs; ++j) {
      fma(0, j, "a", "b");
      if (c.parts == 2) fma(0, j, "n", "d"), fma(1, j, "a", "d"), fma(1, j, "e", "b");
    }
  }
  t += fill("    a += @h@;\n    b += b_step;\n  }\n", {{"h", number(rows * c.parts)}});
  auto place = [&](int i, int p, int j) {
    return fill("*(vu_@c@ *)(t + @row@ * ld + @at@)",
                {{"c", c.name}, {"row", number(i * c.parts + p)}, {"at", number(j * tile.lanes)}});
  };
  auto each = [&](auto&& line) {
    for (int i = 0; i < rows; ++i)
      for (int p = 0; p < c.parts; ++p)
        for (int j = 0; j < vecs; ++j) line(place(i, p, j), acc(p, i, j));
  };
  if (c.parts == 1) {
    t += "  if (add) {\n";
    each([&](const std::string& at, const std::string& name) {
      t += "    " + name + " = " + at + " + " + name + ";\n";
    });
    t += "  }\n";
  }
  each([&](const std::string& at, const std::string& name) { t += "  " + at + " = " + name + ";\n"; });
  return t + "}\n";
}

// C gets the local tile t, rows w apart. Complex C is interleaved, the tile holds w real parts, then w imaginary ones.
constexpr std::string_view real_put = R"(
static void @c@_put(const @s@ *t, i64 w, @s@ *c, i64 ldc, i64 rows, i64 cols, i64 add) {
  for (i64 i = 0; i < rows; ++i, t += w, c += ldc) {
    if (add) for (i64 j = 0; j < cols; ++j) c[j] = c[j] + t[j];
    else for (i64 j = 0; j < cols; ++j) c[j] = t[j];
  }
}
)";
constexpr std::string_view complex_put = R"(
static void @c@_put(const @s@ *t, i64 w, @s@ *c, i64 ldc, i64 rows, i64 cols, i64 add) {
  for (i64 i = 0; i < rows; ++i, t += 2 * w, c += 2 * ldc) {
    for (i64 j = 0; j < cols; ++j) {
      c[2 * j] = add ? c[2 * j] + t[j] : t[j];
      c[2 * j + 1] = add ? c[2 * j + 1] + t[w + j] : t[w + j];
    }
  }
}
)";

constexpr std::string_view kernel_head = R"(
static inline i64 @c@_height(i64 n) { return @heights@; }
static inline i64 @c@_width(i64 n) { return @widths@; }

/* C (rows x cols) = or += A panel x B panel over kc values of k. b_step is the distance between b's k, 0 if packed. */
WIDE_@c@ static void gemm_@c@_@level@_kernel(i64 kc, const void *a, const void *b, i64 b_step, void *c,
                                              i64 ldc, i64 rows, i64 cols, i64 add) {
  @s@ t[@tile@] __attribute__((aligned(64)));
  i64 h = @c@_height(rows), w = @c@_width(cols), whole = @parts@ == 1 && h == rows && w == cols;
  @s@ *to = whole ? c : t;
  i64 ld = whole ? ldc : w, adds = whole && add;
  if (!b_step) b_step = w * @parts@;
  switch (h * 1000 + w) {
)";

std::string print_kernel(GemmLevel level, const Compute& c, const Tile& tile) {
  std::string out;
  for (int rows : tile.heights) {
    for (int vecs : tile.widths) out += print_body(c, tile, rows, vecs);
  }
  Values values = {{"c", c.name},
                   {"s", c.scalar},
                   {"level", gemm_level_name(level)},
                   {"heights", print_choice(tile.heights, 1)},
                   {"widths", print_choice(tile.widths, tile.lanes)},
                   {"tile", number(tile.heights.back() * tile.widths.back() * tile.lanes * c.parts)},
                   {"parts", number(c.parts)}};
  out += fill(c.parts == 2 ? complex_put : real_put, values);
  out += fill(kernel_head, values);
  for (int rows : tile.heights) {
    for (int vecs : tile.widths) {
      out += fill(
          "    case @case@: @c@_tile_@r@x@v@(kc, a, b, b_step, to, ld, adds); break;\n",
          {{"case", number(rows * 1000 + vecs * tile.lanes)}, {"c", c.name}, {"r", number(rows)}, {"v", number(vecs)}});
    }
  }
  return out + fill("  }\n  if (!whole) @c@_put(t, w, c, ldc, rows, cols, add);\n}\n", values);
}

// Packing by blocks: columns of a panel that are contiguous in memory are copied, otherwise 4 x 4 blocks are turned in
// registers where k is contiguous, 64 k at a time so that the written part of the panel stays in the first-level cache.
constexpr std::string_view real_pack = R"(
static inline @s@ @d@_load(@t@ x) { return @load@; }
typedef @s@ q_@d@ __attribute__((vector_size(@quad@)));
typedef @s@ qu_@d@ __attribute__((vector_size(@quad@), aligned(@align@), may_alias));
#define LOAD4_@d@(p) @load4@
static inline __attribute__((always_inline)) void @d@_pack(i64 kc, i64 n, i64 w, const @t@ *__restrict from, i64 sn,
                                                           i64 sk, @s@ *__restrict to) {
  if (n < w) {
    for (i64 k = 0; k < kc; ++k) for (i64 j = n; j < w; ++j) to[k * w + j] = 0;
  }
  if (sn == 1) {
    for (i64 k = 0; k < kc; ++k) {
      const @t@ *p = from + k * sk;
      for (i64 j = 0; j < n; ++j) to[k * w + j] = @d@_load(p[j]);
    }
    return;
  }
  for (i64 k0 = 0; k0 < kc; k0 += 64) {
    i64 end = kc - k0 < 64 ? kc : k0 + 64, j = 0;
    for (; sk == 1 && j + 4 <= n; j += 4) {
      i64 k = k0;
      for (i64 i = 0; i < 4 && end < kc; ++i)
        for (i64 ahead = 0; ahead < 64; ahead += 64 / sizeof(@t@)) __builtin_prefetch(from + (j + i) * sn + end + ahead);
      for (; k + 4 <= end; k += 4) {
        const @t@ *p = from + j * sn + k;
        q_@d@ r0 = LOAD4_@d@(p), r1 = LOAD4_@d@(p + sn), r2 = LOAD4_@d@(p + 2 * sn), r3 = LOAD4_@d@(p + 3 * sn);
        q_@d@ x0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), x1 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
        q_@d@ y0 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), y1 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
        @s@ *q = to + k * w + j;
        *(qu_@d@ *)q = __builtin_shufflevector(x0, y0, 0, 1, 4, 5);
        *(qu_@d@ *)(q + w) = __builtin_shufflevector(x0, y0, 2, 3, 6, 7);
        *(qu_@d@ *)(q + 2 * w) = __builtin_shufflevector(x1, y1, 0, 1, 4, 5);
        *(qu_@d@ *)(q + 3 * w) = __builtin_shufflevector(x1, y1, 2, 3, 6, 7);
      }
      for (; k < end; ++k) for (i64 i = 0; i < 4; ++i) to[k * w + j + i] = @d@_load(from[(j + i) * sn + k]);
    }
    for (; j < n; ++j) for (i64 k = k0; k < end; ++k) to[k * w + j] = @d@_load(from[j * sn + k * sk]);
  }
}
)";
constexpr std::string_view complex_pack = R"(
static void @d@_pack(i64 kc, i64 n, i64 w, const @t@ *from, i64 sn, i64 sk, @s@ *to) {
  for (i64 k = 0; k < kc; ++k, to += 2 * w) {
    for (i64 j = 0; j < n; ++j) {
      const @t@ *p = from + 2 * (j * sn + k * sk);
      to[j] = p[0];
      to[w + j] = p[1];
    }
    for (i64 j = n; j < w; ++j) to[j] = to[w + j] = 0;
  }
}
)";

// The full size gets a copy of the loops with a constant width.
constexpr std::string_view pack_entry =
    R"(
static void gemm_@d@_@level@_pack_@side@(i64 kc, i64 n, const void *from, i64 sn, i64 sk, void *to) {
  if (n == @full@) @d@_pack(kc, @full@, @full@, from, sn, sk, to);
  else @d@_pack(kc, n, @c@_@size@(n), from, sn, sk, to);
}
)";

constexpr std::string_view round_entry =
    R"(
static void gemm_@d@_@level@_round(i64 rows, i64 cols, const void *from, i64 ld_from, void *to, i64 ld_to) {
  const @s@ *p = from;
  @u@ *q = to;
  for (i64 i = 0; i < rows; ++i, p += ld_from, q += ld_to) {
    for (i64 j = 0; j < cols; ++j) { @s@ x = p[j]; q[j] = @store@; }
  }
}
)";

std::string print_storage(GemmLevel level, Storage d, const Compute& c, const Tile& tile) {
  // These levels have instructions for float16, and loops over conversions become vectors of them.
  const bool instructions = level != GemmLevel::base && std::string_view(d.name) == "f16";
  if (instructions) d.load = "(float)BITS(_Float16, x)", d.store = "BITS(u16, (_Float16)x)";
  int nr = tile.widths.back() * tile.lanes, mr = tile.heights.back();
  std::string_view type = d.type;
  Values values = {
      {"d", d.name},
      {"t", d.type},
      {"u", type == "__INT16_TYPE__" ? "u16"
            : type == "signed char"  ? "u8"
                                     : d.type},
      {"s", c.scalar},
      {"c", c.name},
      {"level", gemm_level_name(level)},
      {"load", d.load},
      {"store", d.store ? d.store : ""},
      {"load4", instructions ? "__builtin_convertvector(*(const four_f16 *)(p), q_f16)"
                             : fill("(q_@d@){@d@_load((p)[0]), @d@_load((p)[1]), @d@_load((p)[2]), @d@_load((p)[3])}",
                                    {{"d", d.name}})},
      {"quad", number(4 * c.bytes)},
      {"align", number(c.bytes)},
      {"mr", number(mr)},
      {"nr", number(nr)},
      {"element", number(d.bytes)},
      {"compute", number(c.bytes * c.parts)},
      {"lanes", number(tile.lanes)},
      {"plain", number(d.store == nullptr && c.parts == 1)},
      {"one", d.one},
      {"round", d.store ? fill("gemm_@d@_@level@_round", {{"d", d.name}, {"level", gemm_level_name(level)}})
                        : std::string("0")}};
  auto with = [&](Values more) {
    more.insert(more.end(), values.begin(), values.end());
    return more;
  };
  std::string out =
      instructions ? "typedef _Float16 four_f16 __attribute__((vector_size(8), aligned(2), may_alias));" : "";
  out += fill(c.parts == 2 ? complex_pack : real_pack, values);
  out += fill(pack_entry, with({{"side", "a"}, {"full", number(mr)}, {"size", "height"}}));
  out += fill(pack_entry, with({{"side", "b"}, {"full", number(nr)}, {"size", "width"}}));
  if (d.store) out += fill(round_entry, values);
  return out + fill(R"(
static const @t@ @d@_one[] = {@one@};
const struct gemm_table gemm_@d@_@level@ = {
  @mr@, @nr@, @lanes@, @element@, @compute@, @plain@, @d@_one,
  gemm_@d@_@level@_pack_a, gemm_@d@_@level@_pack_b, gemm_@c@_@level@_kernel, @round@};
)",
                    values);
}

}  // namespace

const char* gemm_level_name(GemmLevel level) {
  return level == GemmLevel::base ? "base" : level == GemmLevel::v3 ? "v3" : "v4";
}

const std::vector<std::string_view>& gemm_dtypes() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const Storage& s : storages) list.push_back(s.name);
    return list;
  }();
  return names;
}

std::string print_gemm(GemmLevel level, const std::vector<std::string_view>& dtypes) {
  std::string out(prologue);
  auto wanted = [&](std::string_view dtype) { return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end(); };
  if (wanted("bf16") || wanted("f16")) out += half_types;
  for (std::string half : {"bf16", "f16"})
    if (wanted(half) && (half == "bf16" || level == GemmLevel::base))
      out += half_function(half + "_to_f32") + half_function("f32_to_" + half);
  std::vector<std::string_view> printed;
  for (std::string_view name : dtypes) {
    const Storage& storage = storage_named(name);
    const Compute& compute = compute_named(storage.compute);
    Tile tile = tile_of(level, compute);
    if (std::find(printed.begin(), printed.end(), compute.name) == printed.end()) {
      out += print_types(level, compute, tile) + print_kernel(level, compute, tile);
      printed.push_back(compute.name);
    }
    out += print_storage(level, storage, compute, tile);
  }
  return out;
}

}  // namespace strata::lower
