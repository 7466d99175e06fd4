#include "lower/source.h"

#include "lower/print/print_spaces.h"

namespace strata::lower {

namespace {

// "ops/pointwise.yaml:12: aten::add.Tensor" ends with the operator's name, or with the kernel's own.
std::string operator_of(const KernelDesc& d) {
  const std::string source = d.source;
  return source.substr(source.rfind(' ') + 1);
}

}  // namespace

KernelSource kernel_source(const std::string& name, DType dtype, const std::string& dialect_name) {
  const Dialect& spoken = dialect(dialect_name);
  std::string dtypes;  // of all rows of that name
  for (int64_t k = 0; k < table_kernel_count; ++k) {
    const KernelDesc& d = table_kernels[k];
    const std::string full = operator_of(d);
    if (name != d.name && name != full && "aten::" + name != full) continue;
    if (d.dtypes >> int(dtype) & 1) {
      const Nest nest = build_nest(d, dtype, true);
      return {print_nests({nest}, spoken), nest.symbol(), parameters(nest)};
    }
    for (int t = 0; t < kDTypeCount; ++t)
      if (d.dtypes >> t & 1) dtypes += (dtypes.empty() ? "" : ", ") + std::string(traits(DType(t)).name);
  }
  if (!dtypes.empty())
    throw_error(ErrorKind::Value,
                str_cat("kernel_source: ", name, " has no kernel for ", dtype, "; it has them for ", dtypes));
  throw_error(ErrorKind::Value, str_cat("kernel_source: no printed kernel of the name '", name,
                                        "': it is composed of other operators, or no expression of the table says it"));
}

std::string space_source(const std::string& family, uint32_t dtypes) {
  std::vector<const KernelDesc*> kernels;
  for (int64_t k = 0; k < table_kernel_count; ++k)
    if (table_kernels[k].kind == KernelKind::Space && family == table_kernels[k].family)
      kernels.push_back(&table_kernels[k]);
  return kernels.empty() ? "" : print_spaces(kernels, "portable_" + family, dtypes, true);
}

}  // namespace strata::lower
