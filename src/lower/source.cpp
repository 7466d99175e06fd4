#include "lower/source.h"

#include <optional>

#include "lower/print/print_spaces.h"

namespace strata::lower {

namespace {

// "ops/pointwise.yaml:12: aten::add.Tensor" ends with the operator's name, or with the kernel's own.
std::string operator_of(const KernelDesc& d) {
  const std::string source = d.source;
  return source.substr(source.rfind(' ') + 1);
}

constexpr uint32_t bit(DType t) { return 1u << int(t); }

// The dtype of the kernel for `dtype`, if there is one.
std::optional<DType> kernel_dtype(const KernelDesc& d, DType dtype) {
  if (d.dtypes & bit(dtype)) return dtype;
  uint32_t widths = 0;
  for (DType t : kWidthTypes) widths |= bit(t);
  if (d.dtypes == widths) return width_dtype(dtype);
  return std::nullopt;
}

Nest nest_of(const std::string& name, DType dtype, bool or_first) {
  std::string dtypes;  // of all rows of that name
  const KernelDesc* first = nullptr;
  for (int64_t k = 0; k < table_kernel_count; ++k) {
    const KernelDesc& d = table_kernels[k];
    const std::string full = operator_of(d);
    if (name != d.name && name != full && "aten::" + name != full) continue;
    if (const std::optional<DType> own = kernel_dtype(d, dtype)) return build_nest(d, *own, true);
    if (!first) first = &d;
    for (int t = 0; t < kDTypeCount; ++t)
      if (d.dtypes >> t & 1) dtypes += (dtypes.empty() ? "" : ", ") + std::string(traits(DType(t)).name);
  }
  if (first && or_first) return build_nest(*first, DType(__builtin_ctz(first->dtypes)), true);
  if (!dtypes.empty())
    throw_error(ErrorKind::Value,
                str_cat("kernel_source: ", name, " has no kernel for ", dtype, "; it has them for ", dtypes));
  throw_error(ErrorKind::Value, str_cat("kernel_source: no printed kernel of the name '", name,
                                        "': it is composed of other operators, or no expression of the table says it"));
}

}  // namespace

KernelSource kernel_source(const std::string& name, DType dtype, const std::string& dialect_name) {
  const Dialect& spoken = dialect(dialect_name);
  const Nest nest = nest_of(name, dtype, false);
  return {print_nests({nest}, spoken), nest.symbol(), parameters(nest)};
}

KernelSource kernel_sources(const std::vector<std::string>& names, DType dtype, const std::string& dialect_name) {
  const Dialect& spoken = dialect(dialect_name);
  std::vector<Nest> nests;
  for (const std::string& name : names) nests.push_back(nest_of(name, dtype, true));
  STRATA_CHECK_VALUE(!nests.empty(), "kernel_source: expected a name");
  return {print_nests(nests, spoken), nests[0].symbol(), parameters(nests[0])};
}

std::string space_source(const std::string& family, uint32_t dtypes) {
  std::vector<const KernelDesc*> kernels;
  for (int64_t k = 0; k < table_kernel_count; ++k)
    if (table_kernels[k].kind == KernelKind::Space && family == table_kernels[k].family)
      kernels.push_back(&table_kernels[k]);
  return kernels.empty() ? "" : print_spaces(kernels, "portable_" + family, dtypes, true);
}

}  // namespace strata::lower
