#include "device/kernels.h"

namespace strata::device {

StrataKernel Kernels::get(const KernelNest& nest) {
  return all_.get(&nest, [&] { return made(nest); });
}

StrataKernel Kernels::made(const KernelNest& nest) const {
  const std::string text = lower::print_entry(nest.nest, plugin_.dialect, "run", nest.group);
  StrataModule module = nullptr;
  StrataKernel kernel = nullptr;
  check(plugin_, plugin_.table->compile(device_, text.c_str(), &module), str_cat("compiling ", nest.key));
  check(plugin_, plugin_.table->kernel(module, "run", &kernel), str_cat("the entry point of ", nest.key));
  return kernel;
}

}  // namespace strata::device
