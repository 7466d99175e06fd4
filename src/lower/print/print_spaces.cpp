#include "lower/print/print_spaces.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/dtype.h"
#include "lower/pass/space_nest.h"
#include "lower/print/print_nest.h"

namespace strata::lower {
namespace {

constexpr uint32_t kWidths = 1u << int(DType::U8) | 1u << int(DType::U16) | 1u << int(DType::U32) |
                             1u << int(DType::U64) | 1u << int(DType::C128);

// The structs of kernel_abi.h.
const char* const kEntry = R"C(typedef struct StrataSpaceRange {
  const char* name;
  u8 kind, component, runs, named;
} StrataSpaceRange;
typedef struct StrataSpaceOperand {
  u8 dtype, output, dims;
  const u8* range;
} StrataSpaceOperand;
typedef struct StrataSpaceEntry {
  const char* name;
  u8 dtype, rank, inner, chained, ranges, operands, scalars;
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

// The ranges along which an operand's index hangs on memory, a bit each.
uint64_t named_ranges(const Nest& nest) {
  std::vector<char> read(nest.nodes.size(), 0);
  uint64_t ranges = 0;
  for (size_t v = 0; v < nest.nodes.size(); ++v) {
    const Node& n = nest.nodes[v];
    read[v] = n.op == Op::At;
    for (int a : n.arg)
      if (a >= 0) read[v] |= read[size_t(a)];
    if (n.op != Op::Mul) continue;
    for (size_t k = 0; k < 2; ++k)
      if (const Node& s = nest.nodes[size_t(n.arg[k])]; s.op == Op::Stride && read[size_t(n.arg[1 - k])])
        ranges |= uint64_t(1) << nest.operands[s.imm].dims[s.part];
  }
  return ranges;
}

// The arrays of an entry, and the entry itself into `entries`.
std::string tables(const KernelDesc& desc, const Nest& nest, SpaceForm form, std::string& entries) {
  const std::string s = nest.symbol();
  const uint64_t named = named_ranges(nest);
  std::string out = "static const StrataSpaceRange " + s + "_ranges[] = {";
  for (size_t k = 0; k < nest.ranges.size(); ++k) {
    const NestRange& r = nest.ranges[k];
    out += std::string(k ? ", " : "") + "{\"" + r.of + "\", " + number(r.kind) + ", " + number(r.component) + ", " +
           number(!(nest.loops() >> k & 1) ? 0
                  : r.whole                ? 3
                                           : 1 + r.ordered) +
           ", " + number(named >> k & 1) + "}";
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
             number(uint64_t(form.rank)) + ", " + number(form.inner) + ", " +
             number(!form.chained                           ? 0
                    : nest.stores[0].into == NestStore::Mul ? 2
                                                            : 1) +
             ", " + number(nest.ranges.size()) + ", " + number(nest.operands.size()) + ", " +
             number(nest.scalars.size()) + ", " + s + "_ranges, " + s + "_operands, call_" + s + "},\n";
  return out;
}

// A function's text without comments and symbol.
std::string nameless(const std::string& text, const std::string& symbol) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string line = text.substr(at, end - at);
    at = end;
    if (line.starts_with("//")) continue;
    for (size_t p; (p = line.find(symbol + "(")) != std::string::npos;) line.erase(p, symbol.size());
    out += line;
  }
  return out;
}

// Moves elements in a way for which wider sets are faster: from places that a tensor names, of which they read several
// at once, or fills without reading.
bool gains(const KernelDesc& d) {
  return d.dtypes == kWidths && !std::strstr(d.text, "put_into(") &&
         (!*d.inputs || std::strstr(d.text, "checked(") || std::strstr(d.text, "wrapped("));
}

// Sums of products of integers alone.
bool sums_integers(const KernelDesc& d) {
  for (int t = 0; t < kDTypeCount; ++t)
    if (d.dtypes >> t & 1 && !is_integral(DType(t))) return false;
  return std::strstr(d.text, " sum(") && !std::strstr(d.text, "_into(");
}

}  // namespace

std::string print_spaces(const std::vector<const KernelDesc*>& kernels, const std::string& symbol, uint32_t dtypes,
                         bool portable) {
  Dialect local = portable ? c99 : hinted_c;
  local.function = "static void ";
  NestHelpers helpers(local);
  std::string functions, data, entries;
  // Scatters that go element by element, or count, gain little from wide vectors: they are printed once. Those of lines
  // are printed for each set.
  const bool wider = dtypes != ~0u && !portable;
  std::map<std::string, std::string> printed;  // text without its symbol -> symbol
  uint64_t count = 0;
  for (const KernelDesc* d : kernels)
    for (int t = 0; t < kDTypeCount; ++t) {
      const uint32_t gaining = portable ? 0 : sums_integers(*d) ? d->dtypes : gains(*d) ? kWidths : 0;
      if (!((gaining ? gaining : d->dtypes & dtypes) >> t & 1)) continue;
      for (SpaceForm form : space_forms(*d, DType(t))) {
        if (wider && (form.chained || (d->sequence && !form.inner && std::strstr(d->text, "_into(")))) continue;
        const Nest nest = build_space(*d, DType(t), form);
        // Entries that differ in their names alone (max_pool2d, max_pool3d) share their functions.
        const std::string text = print_nest(nest, local, helpers) + "static " + print_adapter(nest);
        auto [found, is_new] = printed.emplace(nameless(text, nest.symbol()), nest.symbol());
        functions += is_new ? text : "#define call_" + nest.symbol() + " call_" + found->second + "\n";
        data += tables(*d, nest, form, entries);
        ++count;
      }
    }
  return std::string("// Space kernels, printed by lower/ from the operator table. Do not edit.\n") + local.head +
         kNestArgs + kEntry + helpers.text() + "\n" + functions + data +
         "static const StrataSpaceEntry entries[] = {\n" + entries + "  {0}};\nconst StrataSpaceFile " + symbol +
         " = {entries, " + number(count) + "};\n";
}

}  // namespace strata::lower
