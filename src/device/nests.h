// Nests by name, each made once in the process: what a kernel takes is known before any device compiles it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lower/print/print_entry.h"

namespace strata::device {

struct KernelNest {
  std::string key;
  lower::Nest nest;
  std::vector<lower::NestParameter> parameters;  // of its entry point
  std::vector<int> items;                        // ranges
};

// The nest of that key, made where it is new; it lives for ever.
const KernelNest& kernel_nest(const std::string& key, const std::function<lower::Nest()>& make);

}  // namespace strata::device
