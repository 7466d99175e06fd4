#include "run/isa.h"

#include <atomic>

#include "base/env.h"
#include "base/error.h"

namespace strata::eager {

namespace {

constexpr const char* kIsas[kIsaCount] = {"base", "v3", "v4"};

bool machine_has(int isa) {
  __builtin_cpu_init();
  if (isa == 0) return true;
  return isa == 1 ? __builtin_cpu_supports("x86-64-v3") : __builtin_cpu_supports("x86-64-v4");
}

}  // namespace

int isa_index(const std::string& name) {
  for (int i = 0; i < kIsaCount; ++i)
    if (name == kIsas[i]) return i;
  throw_error(ErrorKind::Value, str_cat("STRATA_CPU: expected base, v3 or v4, got ", name));
}

namespace {

std::atomic<int> chosen{-1};
std::atomic<uint32_t> generation{1};

}  // namespace

int current_isa() {
  int c = chosen.load();
  if (c >= 0) return c;
  std::string wanted = env_text("STRATA_CPU");
  if (!wanted.empty()) {
    c = isa_index(wanted);
    STRATA_CHECK(machine_has(c), "STRATA_CPU: this machine does not have the instruction set ", wanted);
  } else {
    c = machine_has(2) ? 2 : machine_has(1) ? 1 : 0;
  }
  chosen.store(c);
  return c;
}

const char* cpu_isa() { return kIsas[current_isa()]; }

void set_cpu_isa(const char* isa) {
  int i = isa_index(isa);
  STRATA_CHECK(machine_has(i), "set_cpu_isa: this machine does not have the instruction set ", isa);
  chosen.store(i);
  generation.fetch_add(1);
}

uint32_t isa_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace strata::eager
