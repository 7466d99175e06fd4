#include "lower/print/print_spaces.h"

#include "core/dtype.h"
#include "lower/pass/space_nest.h"
#include "lower/print/print_nest.h"

namespace strata::lower {
namespace {

const char* const kAnyOrder = R"C(#ifdef __clang__
#define ANY_ORDER _Pragma("clang loop vectorize(assume_safety)")
#else
#define ANY_ORDER _Pragma("GCC ivdep")
#endif
)C";

// The structs of kernel_abi.h.
const char* const kEntry = R"C(typedef struct StrataSpaceRange {
  const char* name;
  u8 kind, component, runs;
} StrataSpaceRange;
typedef struct StrataSpaceOperand {
  u8 dtype, output, dims;
  const u8* range;
} StrataSpaceOperand;
typedef struct StrataSpaceEntry {
  const char* name;
  u8 dtype, rank, inner, ranges, operands, scalars;
  const StrataSpaceRange* range;
  const StrataSpaceOperand* operand;
  void (*fn)(const StrataNestArgs*);
} StrataSpaceEntry;
typedef struct StrataSpaceFile {
  const StrataSpaceEntry* entries;
  i64 count;
} StrataSpaceFile;
)C";

std::string number(uint64_t v) { return std::to_string(v); }

// The arrays of an entry, and the entry itself into `entries`.
std::string tables(const KernelDesc& desc, const Nest& nest, SpaceForm form, std::string& entries) {
  const std::string s = nest.symbol();
  std::string out = "static const StrataSpaceRange " + s + "_ranges[] = {";
  for (size_t k = 0; k < nest.ranges.size(); ++k) {
    const NestRange& r = nest.ranges[k];
    out += std::string(k ? ", " : "") + "{\"" + r.of + "\", " + number(r.kind) + ", " + number(r.component) + ", " +
           number(nest.loops() >> k & 1) + "}";
  }
  out += "};\n";
  std::string operands;
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const NestOperand& o = nest.operands[k];
    const std::string dims = s + "_dims" + number(k);
    out += "static const u8 " + dims + "[] = {";
    for (int d : o.dims) out += number(uint64_t(d)) + ", ";
    out += "0};\n";
    operands += "{" + number(uint64_t(o.storage)) + ", " + number(o.output) + ", " + number(o.dims.size()) + ", " +
                dims + "}, ";
  }
  out += "static const StrataSpaceOperand " + s + "_operands[] = {" + operands + "};\n";
  entries += "  {\"" + std::string(desc.name) + "\", " + number(uint64_t(nest.dtype)) + ", " +
             number(uint64_t(form.rank)) + ", " + number(form.inner) + ", " + number(nest.ranges.size()) + ", " +
             number(nest.operands.size()) + ", " + number(nest.scalars.size()) + ", " + s + "_ranges, " + s +
             "_operands, call_" + s + "},\n";
  return out;
}

}  // namespace

std::string print_spaces(const std::vector<const KernelDesc*>& kernels, const std::string& symbol) {
  Dialect local = c99;
  local.function = "static void ";
  local.any_order = "ANY_ORDER";
  NestHelpers helpers(local);
  std::string functions, data, entries;
  uint64_t count = 0;
  for (const KernelDesc* d : kernels)
    for (int t = 0; t < kDTypeCount; ++t) {
      if (!(d->dtypes >> t & 1)) continue;
      for (SpaceForm form : space_forms(*d)) {
        const Nest nest = build_space(*d, DType(t), form);
        functions += print_nest(nest, local, helpers) + "static " + print_adapter(nest);
        data += tables(*d, nest, form, entries);
        ++count;
      }
    }
  return std::string("// Space kernels, printed by lower/ from the operator table. Do not edit.\n") + c99.head +
         kAnyOrder + kNestArgs + kEntry + helpers.text() + "\n" + functions + data +
         "static const StrataSpaceEntry entries[] = {\n" + entries + "  {0}};\nconst StrataSpaceFile " + symbol +
         " = {entries, " + number(count) + "};\n";
}

}  // namespace strata::lower
