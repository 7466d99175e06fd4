// The texts of the table's kernels in a device's dialect, for tests and tools.
#pragma once
#include <string>
#include <vector>

#include "core/dtype.h"
#include "device/plugin.h"

namespace strata::device {

struct KernelText {
  std::string name, text;  // the entry point is `run`
};
// Every `step`-th kernel of the table from `first` on that is printed for the dtype, in all its forms.
std::vector<KernelText> kernel_texts(const Plugin& plugin, DType dtype, int64_t first, int64_t step);

}  // namespace strata::device
