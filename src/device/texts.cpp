#include "device/texts.h"

#include <set>

#include "device/launch.h"
#include "lower/desc.h"
#include "lower/pass/grouped.h"
#include "lower/pass/space_nest.h"
#include "lower/print/print_entry.h"
#include "run/space.h"

namespace strata::device {

std::vector<KernelText> kernel_texts(const Plugin& plugin, DType dtype, int64_t first, int64_t step) {
  STRATA_CHECK_VALUE(first >= 0 && step > 0, "kernel_texts: expected a first kernel and a step, got ", first, " and ",
                     step);
  std::vector<KernelText> out;
  auto add = [&](const lower::Nest& nest) {
    out.push_back({nest.symbol(), lower::print_entry(nest, plugin.dialect, "run")});
    if (plugin.dialect.group && lower::grouped_ranges(nest))
      out.push_back({nest.symbol() + "_group", lower::print_entry(nest, plugin.dialect, "run", plugin.dialect.group)});
  };
  for (int64_t k = first; k < lower::table_kernel_count; k += step) {
    const lower::KernelDesc& desc = lower::table_kernels[k];
    if (!(desc.dtypes >> int(dtype) & 1)) continue;
    if (desc.kind == lower::KernelKind::Space)
      for (const lower::SpaceForm& form : lower::space_forms(desc, dtype)) add(lower::build_space(desc, dtype, form));
    else
      add(lower::build_nest(desc, dtype, true, {2, 2}));
  }
  return out;
}

std::vector<const KernelNest*> likely_nests(const Plugin& plugin, DType dtype) {
  std::vector<const KernelNest*> out = copy_nests(dtype);
  const DType width = width_dtype(dtype);
  for (int64_t k = 0; k < lower::table_kernel_count; ++k) {
    const lower::KernelDesc& desc = lower::table_kernels[k];
    auto printed = [&](DType t) { return desc.dtypes >> int(t) & 1; };
    if (desc.kind == lower::KernelKind::Space) {
      // What moves elements is printed for their width.
      if (printed(dtype) || printed(width))
        for (const KernelNest* n : space_nests(desc, printed(dtype) ? dtype : width)) out.push_back(n);
    } else if (printed(dtype)) {
      const int rows = desc.kind == lower::KernelKind::Rows;
      const int most = plugin.dialect.group, small = small_group(plugin);
      std::set<int> groups{0};
      if (rows && most) groups.insert({most, small});
      for (int group : groups) {
        out.push_back(&block_nest(desc, dtype, rows, 1, group));
        out.push_back(&block_nest(desc, dtype, rows, 2, group));
        if (rows) out.push_back(&block_nest(desc, dtype, 2, 1, group));
      }
    }
  }
  return out;
}

}  // namespace strata::device
