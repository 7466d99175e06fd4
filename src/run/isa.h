// The instruction set whose kernels run: the best one of the machine, or the one that STRATA_CPU names.
#pragma once
#include <cstdint>
#include <string>

namespace strata::eager {

constexpr int kIsaCount = 3;

int isa_index(const std::string& name);  // of "base", "v3", "v4"; raises Value for others
int current_isa();
const char* cpu_isa();               // its name
void set_cpu_isa(const char* name);  // raises when the machine lacks it; later calls use it
uint32_t isa_generation();           // changes with set_cpu_isa, so that cached entries are looked up again

}  // namespace strata::eager
