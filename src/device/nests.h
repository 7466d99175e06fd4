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
  int group = 0;                                 // items that share a turn of those; 0: an item has it alone
};

// The nest of that key, made where it is new; it lives for ever. `group`: how many items shall share a row, where they
// can.
const KernelNest& kernel_nest(const std::string& key, const std::function<lower::Nest()>& make, int group = 0);
// The one that was made under that key; null where none was.
const KernelNest* known_nest(const std::string& key);

}  // namespace strata::device
