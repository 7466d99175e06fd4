// Host tool of the build: `print_kernels OUTDIR [--report]` prints the table's kernels as OUTDIR/<isa>_<family>.c, and
// registry.cpp, which lists them by instruction set; and the matrix products as OUTDIR/<isa>_gemm.c with
// gemm_registry.cpp. Files that would not change are left alone.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "lower/expr/build.h"
#include "lower/print/gemm.h"
#include "lower/print/print_c.h"
#include "lower/print/print_spaces.h"

namespace strata::lower {
namespace {

// Every dtype but float16 has one-lane kernels; these have all three instruction sets. Float16 has the kernels of
// float32, between conversions; its own, in all sets, are the few that those would not serve, conversions among them,
// and, where an instruction converts, short arithmetic and its sums, whose time would be that of the conversions.
// (Kernels that compare or round to whole numbers are not among them: Clang does that to the halves, lane by lane.)
constexpr uint32_t kAllSets = 1u << int(DType::F32) | 1u << int(DType::F64) | 1u << int(DType::BF16) |
                              1u << int(DType::I64) | 1u << int(DType::Bool) | 1u << int(DType::F16);

bool is_short_arithmetic(const Kernel& k) {
  constexpr size_t kMost = 12;  // nodes of a pass, leaves and conversions among them
  auto computes = [](const Node& n) {
    switch (n.op) {
      case Op::WidenHalf:
      case Op::NarrowHalf:
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Div:
      case Op::Neg:
      case Op::Fma:
      case Op::Sqrt:
      case Op::Bitcast:
      case Op::And:
      case Op::Or:
        return true;
      default:
        return n.leaf();
    }
  };
  return std::ranges::all_of(k.passes, [&](const Pass& p) {
    return p.nodes.size() <= kMost && std::ranges::all_of(p.nodes, computes) &&
           std::ranges::all_of(p.reductions, [](const Reduction& r) { return r.combine == Combine::Add; });
  });
}

bool borrowed(const KernelDesc& d, const Kernel& k, Isa isa) {
  return k.dtype == DType::F16 && (d.dtypes >> int(DType::F32) & 1) && !k.rounds_inside &&
         (isa == Isa::Base || !is_short_arithmetic(k));
}

void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  std::ifstream old(path);
  std::stringstream was;
  was << old.rdbuf();
  if (old && was.str() == text) return;
  std::ofstream(path) << text;
}

std::string registry(const std::map<Isa, std::vector<std::string>>& families) {
  std::string text =
      "// Printed kernels by instruction set. Printed by lower/, do not edit.\n#include \"lower/registry.h\"\n\n";
  std::string tables;
  for (const auto& [isa, names] : families) {
    std::string set = isa_name(isa), list;
    for (const std::string& f : names) {
      text += "extern \"C\" const StrataKernelFile strata_kernels_" + set + "_" + f + ";\n";
      list += "    &strata_kernels_" + set + "_" + f + ",\n";
    }
    tables += "static const StrataKernelFile* const " + set + "_files[] = {\n" + list + "    nullptr};\n";
  }
  text += "\n" + tables + "\nextern const StrataIsaTable strata_isa_tables[3] = {\n";
  for (const auto& [isa, names] : families) {
    std::string set = isa_name(isa);
    text += "    {\"" + set + "\", " + set + "_files, " + std::to_string(names.size()) + "},\n";
  }
  return text + "};\n";
}

// Matrix products: every dtype at every level, since all of them share six compute types.
void print_products(const std::filesystem::path& out) {
  std::string externs, list;
  for (GemmLevel level : {GemmLevel::base, GemmLevel::v3, GemmLevel::v4}) {
    std::string isa = gemm_level_name(level);
    write_if_changed(out / (isa + "_gemm.c"), print_gemm(level, gemm_dtypes()));
    for (std::string_view dtype : gemm_dtypes()) {
      std::string symbol = "gemm_" + std::string(dtype) + "_" + isa;
      externs += "extern \"C\" const char " + symbol + "[];\n";
      list += "    {\"" + isa + "\", \"" + std::string(dtype) + "\", " + symbol + "},\n";
    }
  }
  write_if_changed(out / "gemm_registry.cpp",
                   "// Printed matrix products. Printed by lower/, do not edit.\n#include \"lower/registry.h\"\n\n" +
                       externs + "\nextern const StrataGemmTable strata_gemm_tables[] = {\n" + list +
                       "    {nullptr, nullptr, nullptr}};\n");
}

constexpr uint32_t kSpaceSets = 1u << int(DType::F16) | 1u << int(DType::BF16) | 1u << int(DType::F32);

// Space kernels: the same text for every instruction set, but for its symbol. What computes with
// integers or float64 has the baseline's alone, as a rule (print_spaces.cpp).
void print_space_families(const std::filesystem::path& out) {
  std::map<std::string, std::vector<const KernelDesc*>> families;
  for (int64_t k = 0; k < table_kernel_count; ++k)
    if (table_kernels[k].kind == KernelKind::Space && !table_kernels[k].by_hand)
      families[table_kernels[k].family].push_back(&table_kernels[k]);
  std::string externs, list;
  for (Isa isa : {Isa::Base, Isa::V3, Isa::V4})
    for (const auto& [family, kernels] : families) {
      const std::string set = isa_name(isa), symbol = "strata_spaces_" + set + "_" + family;
      write_if_changed(out / (set + "_" + family + "_space.c"),
                       print_spaces(kernels, symbol, isa == Isa::Base ? ~0u : kSpaceSets));
      externs += "extern \"C\" const StrataSpaceFile " + symbol + ";\n";
      list += "    {\"" + set + "\", &" + symbol + "},\n";
    }
  write_if_changed(out / "space_registry.cpp",
                   "// Printed space kernels. Printed by lower/, do not edit.\n#include \"lower/registry.h\"\n\n" +
                       externs + "\nextern const StrataSpaceTable strata_space_tables[] = {\n" + list +
                       "    {nullptr, nullptr}};\n");
}

void run(const std::filesystem::path& out, bool report) {
  std::filesystem::create_directories(out);
  print_products(out);
  print_space_families(out);
  write_if_changed(out / "host.c", host_file());
  std::map<std::string, std::vector<const KernelDesc*>> families;
  for (int64_t k = 0; k < table_kernel_count; ++k)
    if (table_kernels[k].kind != KernelKind::Space) families[table_kernels[k].family].push_back(&table_kernels[k]);
  std::map<Isa, std::vector<std::string>> printed;
  for (Isa isa : {Isa::Base, Isa::V3, Isa::V4}) {
    printed[isa];
    for (const auto& [family, list] : families) {
      std::vector<Kernel> kernels;
      for (const KernelDesc* d : list)
        for (int t = 0; t < kDTypeCount; ++t)
          if ((d->dtypes >> t & 1) && (isa == Isa::Base || (kAllSets >> t & 1)))
            if (Kernel k = build_kernel(*d, DType(t)); !borrowed(*d, k, isa) || isa == Isa::Base) {
              verify(k);
              k.borrowed = borrowed(*d, k, isa);
              kernels.push_back(std::move(k));
            }
      write_if_changed(out / (std::string(isa_name(isa)) + "_" + family + ".c"), print_file(family, kernels, isa));
      printed[isa].push_back(family);
      for (const Kernel& k : kernels) {
        Needs needs;
        if (report && !k.borrowed)
          std::cout << print_function(k, isa, needs).size() << '\t' << kernel_symbol(k, isa) << '\n';
      }
    }
  }
  write_if_changed(out / "registry.cpp", registry(printed));
}

}  // namespace
}  // namespace strata::lower

int main(int argc, char** argv) {
  bool report = argc == 3 && std::string(argv[2]) == "--report";
  if (argc != 2 && !report) {
    std::fprintf(stderr, "usage: print_kernels OUTDIR [--report]\n");
    return 2;
  }
  try {
    strata::lower::run(argv[1], report);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "print_kernels: %s\n", e.what());
    return 1;
  }
  return 0;
}
