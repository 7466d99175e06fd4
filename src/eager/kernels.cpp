#include "eager/kernels.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/env.h"
#include "base/error.h"
#include "lower/registry.h"

namespace strata::eager {

namespace {

constexpr const char* kIsas[3] = {"base", "v3", "v4"};

bool machine_has(int isa) {
  __builtin_cpu_init();
  if (isa == 0) return true;
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (isa == 1) return v3;
  return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
}

int isa_index(const std::string& name) {
  for (int i = 0; i < 3; ++i)
    if (name == kIsas[i]) return i;
  throw_error(ErrorKind::Value, str_cat("STRATA_CPU: expected base, v3 or v4, got ", name));
}

struct Tables {
  std::unordered_map<std::string, const StrataKernelEntry*> entries[3];
  Tables() {
    for (const StrataIsaTable& table : strata_isa_tables) {
      int isa = isa_index(table.isa);
      for (int64_t f = 0; f < table.count; ++f)
        for (int64_t e = 0; e < table.files[f]->count; ++e) {
          const StrataKernelEntry& entry = table.files[f]->entries[e];
          entries[isa].emplace(std::string(entry.name) + '/' + char('a' + entry.dtype), &entry);
        }
    }
  }
};

std::atomic<int> chosen{-1};
std::atomic<uint32_t> generation{1};

int current() {
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

}  // namespace

const StrataKernelEntry* find_kernel(const char* name, DType dtype) {
  static const Tables* tables = new Tables;
  std::string key = std::string(name) + '/' + char('a' + static_cast<int>(dtype));
  for (int isa : {current(), 0}) {
    auto it = tables->entries[isa].find(key);
    if (it != tables->entries[isa].end()) return it->second;
  }
  return nullptr;
}

const char* cpu_isa() { return kIsas[current()]; }

void set_cpu_isa(const char* isa) {
  int i = isa_index(isa);
  STRATA_CHECK(machine_has(i), "set_cpu_isa: this machine does not have the instruction set ", isa);
  chosen.store(i);
  generation.fetch_add(1);
}

uint32_t isa_generation() { return generation.load(std::memory_order_relaxed); }

void raise_status(int32_t status, const char* op) {
  if (status & 1)
    throw_error(ErrorKind::Runtime, str_cat(op,
                                            ": ZeroDivisionError: expected a divisor of integers other than 0, got 0; "
                                            "mask the zeros or use floating point"));
  if (status & 2) throw_error(ErrorKind::Index, str_cat(op, ": index out of range"));
}

}  // namespace strata::eager
