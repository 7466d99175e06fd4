#include "jit/compile/driver.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "core/dtype.h"
#include "run/loop/cast.h"
#include "run/loop/rows_fold.h"
#include "run/loop/rows_loop.h"

namespace strata::jit {

namespace {

constexpr const char* kHelpers = R"(
// ---- Whole tensors. memory: of each output, then of each input, where its first element lies; types, sizes and strides
// (in bytes, 0 where it is repeated) are said with each function. They return 0, or what went wrong: 1, an integer was
// divided by zero; 2, an index was out of range.
typedef struct Place { i64 bytes; bit per_row; const i64* stride; } Place;

static i64 place_of(i64 index, int dims, const i64* size, const i64* stride) {
  i64 at = 0;
  for (int d = dims - 1; d >= 0; d--) at += index % size[d] * stride[d], index /= size[d];
  return at;
}
)";

constexpr const char* kPointwise = R"(
// Chunks of elements, gathered from where they lie and put where they belong.
static i32 over_elements(const StrataKernelEntry* k, const void* params, int dims, const i64* size, i64 elements,
                         const Place* place, char* const* memory) {
  enum { CHUNK = 256 };
  const int operands = k->outputs + k->inputs;
  i32 status = 0;
#pragma omp parallel for
  for (i64 chunk = 0; chunk < (elements + CHUNK - 1) / CHUNK; chunk++) {
    const i64 first = chunk * CHUNK, left = elements - first, count = left < CHUNK ? left : CHUNK;
    const i64 blocks = (count + 15) / 16;
    char room[operands][CHUNK * 16] __attribute__((aligned(64)));
    char* at[operands];
    i64 step[operands];
    i32 own = 0;
    for (int o = 0; o < operands; o++) {
      at[o] = room[o];
      step[o] = 16 * place[o].bytes;
      for (i64 i = 0; o >= k->outputs && i < 16 * blocks; i++)
        __builtin_memcpy(room[o] + i * place[o].bytes,
                         memory[o] + place_of(first + (i < count ? i : count - 1), dims, size, place[o].stride),
                         place[o].bytes);
    }
    k->pointwise(at, step, params, blocks, 0, &own);
    for (int o = 0; o < k->outputs; o++)
      for (i64 i = 0; i < count; i++)
        __builtin_memcpy(memory[o] + place_of(first + i, dims, size, place[o].stride), room[o] + i * place[o].bytes,
                         place[o].bytes);
    if (own) __atomic_fetch_or(&status, own, __ATOMIC_RELAXED);
  }
  return status;
}
)";

constexpr const char* kRows = R"(
// Row by row: the kept dims first, then those that are reduced.
static i32 over_rows(const StrataKernelEntry* k, const void* params, int kept, int dims, const i64* size, i64 rows,
                     i64 length, const Place* place, char* const* memory) {
  const int operands = k->outputs + k->inputs;
  i32 status = 0;
#pragma omp parallel for
  for (i64 row = 0; row < rows; row++) {
    const i64 bytes = (length + 16) * 16;
    char* room = __builtin_malloc((operands + k->scratch_rows) * bytes + 64);
    char* begin = (char*)(((u64)room + 63) & ~63ul);
    char *at[operands + 1], *scratch[k->scratch_rows + 1], *base[operands + 1];
    char slot[k->reductions + 1][16] __attribute__((aligned(16)));
    i32 own = 0;
    for (int o = 0; o < operands; o++) {
      at[o] = begin + o * bytes;
      base[o] = memory[o] + place_of(row, kept, size, place[o].stride);
      for (i64 i = 0; o >= k->outputs && i < (place[o].per_row ? 1 : length); i++)
        __builtin_memcpy(at[o] + i * place[o].bytes,
                         base[o] + place_of(i, dims - kept, size + kept, place[o].stride + kept), place[o].bytes);
    }
    for (int s = 0; s < k->scratch_rows; s++) scratch[s] = begin + (operands + s) * bytes;
    int done = 0;
    for (int p = 0; p < k->passes; p++) {
      const StrataRowPass* pass = &k->pass[p];
      const i64 count = pass->reductions || pass->elementwise ? length : 1;
      StrataRowArgs args = {at, params, slot, scratch, slot[done], count, 0, length, &own};
      pass->fn(&args);
      done += pass->reductions;
    }
    for (int o = 0; o < k->outputs; o++)
      for (i64 i = 0; i < (place[o].per_row ? 1 : length); i++)
        __builtin_memcpy(base[o] + place_of(i, dims - kept, size + kept, place[o].stride + kept),
                         at[o] + i * place[o].bytes, place[o].bytes);
    __builtin_free(room);
    if (own) __atomic_fetch_or(&status, own, __ATOMIC_RELAXED);
  }
  return status;
}
)";

std::string list(const DimVec& values) {
  std::string out;
  for (int64_t v : values) out += str_cat(out.empty() ? "" : ", ", v);
  return out.empty() ? "0" : out;
}

std::string print_use(const Fused& f, int entry, size_t number) {
  // Kept dims first.
  DimVec order, kept, reduced;
  std::vector<bool> is_reduced(f.shape.size());
  for (int64_t d : f.reduced) is_reduced[size_t(d)] = true;
  for (int turn = 0; turn < 2; ++turn)
    for (size_t d = 0; d < f.shape.size(); ++d)
      if (is_reduced[d] == bool(turn)) order.push_back(int64_t(d)), (turn ? reduced : kept).push_back(f.shape[d]);
  DimVec sizes;
  for (int64_t d : order) sizes.push_back(f.shape[size_t(d)]);
  const std::string name = str_cat("run_", number);
  std::string out = str_cat("\n// ", f.kernel.text, "\n"), places, strides;
  const bool rows = !f.reduced.empty();
  if (rows && eager::product(reduced) > eager::kPart)
    return out + str_cat("// over rows of ", eager::product(reduced), " elements: in parts of ", eager::kPart,
                         ", whose results are folded in pairs, by the runtime alone.\n");
  if (rows && eager::product(reduced) == 0) return out + "// over empty rows, which the runtime alone fills.\n";
  size_t k = 0;
  auto add = [&](const FusedOperand& o) {
    DimVec bytes;
    for (int64_t d : order) bytes.push_back(o.strides[size_t(d)] * itemsize(o.memory.dtype));
    strides += str_cat("static const i64 ", name, "_stride_", k, "[] = {", list(bytes), "};\n");
    places += str_cat(places.empty() ? "" : ", ", "{", itemsize(o.memory.dtype), ", ", int(o.per_row), ", ", name,
                      "_stride_", k, "}");
    out += str_cat("//   ", k < f.outs.size() ? "out" : "in", " ", k, ": ", traits(o.memory.dtype).cname, " ",
                   o.memory.sizes,
                   !o.made_by                        ? ""
                   : o.made_by->kind == Launch::Draw ? ", of the random stream"
                                                     : str_cat(", as ", o.made_by->space->op->name, " gives it"),
                   "\n");
    ++k;
  };
  for (const FusedOperand& o : f.outs) add(o);
  for (const FusedOperand& o : f.ins) add(o);
  std::vector<uint64_t> words(2 * std::max<size_t>(f.params.size(), 1));
  for (size_t i = 0; i < f.params.size(); ++i) eager::store_scalar(f.params[i].value, f.params[i].type, &words[2 * i]);
  std::string params;
  for (uint64_t w : words) params += str_cat(params.empty() ? "" : ", ", w, "ul");
  out += strides + str_cat("static const Place ", name, "_place[] = {", places, "};\n", "static const i64 ", name,
                           "_size[] = {", list(sizes), "};\n", "static const u64 ", name,
                           "_params[] __attribute__((aligned(16))) = {", params, "};\n", "i32 ", name,
                           "(char* const* memory) {\n  return ");
  out += rows ? str_cat("over_rows(&entries[", entry, "], ", name, "_params, ", kept.size(), ", ", sizes.size(), ", ",
                        name, "_size, ", eager::product(kept), ", ", eager::product(reduced))
              : str_cat("over_elements(&entries[", entry, "], ", name, "_params, ", sizes.size(), ", ", name, "_size, ",
                        eager::product(sizes));
  return out + str_cat(", ", name, "_place, memory);\n}\n");
}

}  // namespace

std::string print_driver(const std::vector<std::pair<const Fused*, int>>& uses) {
  bool rows = false, elements = false;
  std::string out;
  for (size_t i = 0; i < uses.size(); ++i) {
    (uses[i].first->reduced.empty() ? elements : rows) = true;
    out += print_use(*uses[i].first, uses[i].second, i);
  }
  return str_cat(kHelpers, elements ? kPointwise : "", rows ? kRows : "", out);
}

}  // namespace strata::jit
