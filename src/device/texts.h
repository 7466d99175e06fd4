// The table's kernels in a device's dialect: their texts, for tests and tools, and those that are compiled ahead.
#pragma once
#include <string>
#include <vector>

#include "core/dtype.h"
#include "device/nests.h"
#include "device/plugin.h"

namespace strata::device {

struct KernelText {
  std::string name, text;  // the entry point is `run`
};
// Every `step`-th kernel of the table from `first` on that is printed for the dtype, in all its forms.
std::vector<KernelText> kernel_texts(const Plugin& plugin, DType dtype, int64_t first, int64_t step);

// What programs launch with that dtype: the table's kernels over few dims, copies and conversions.
std::vector<const KernelNest*> likely_nests(const Plugin& plugin, DType dtype);

}  // namespace strata::device
