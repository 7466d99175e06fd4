#include "run/kernels.h"

#include <atomic>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "lower/registry.h"

namespace strata::eager {

namespace {

struct Tables {
  std::unordered_map<std::string, const StrataKernelEntry*> entries[eager::kIsaCount];
  Tables() {
    for (const StrataIsaTable& table : strata_isa_tables) {
      int isa = eager::isa_index(table.isa);
      for (int64_t f = 0; f < table.count; ++f)
        for (int64_t e = 0; e < table.files[f]->count; ++e) {
          const StrataKernelEntry& entry = table.files[f]->entries[e];
          entries[isa].emplace(std::string(entry.name) + '/' + char('a' + entry.dtype), &entry);
        }
    }
  }
};

std::atomic<const StrataKernelEntry* (*)(const char*, DType)> kernel_source{nullptr};

}  // namespace

const StrataKernelEntry* find_kernel(const char* name, DType dtype) {
  static const Tables* tables = new Tables;
  std::string key = std::string(name) + '/' + char('a' + static_cast<int>(dtype));
  for (int isa : {eager::current_isa(), 0}) {
    auto it = tables->entries[isa].find(key);
    if (it == tables->entries[isa].end()) continue;
    return it->second->outputs ? it->second : find_kernel(name, DType::F32);
  }
  const auto source = kernel_source.load(std::memory_order_relaxed);
  return source ? source(name, dtype) : nullptr;
}

void set_kernel_source(const StrataKernelEntry* (*source)(const char* name, DType dtype)) { kernel_source = source; }

void raise_status(int32_t status, const char* op, ErrorKind outside) {
  if (status & 1)
    throw_error(ErrorKind::Runtime, str_cat(op,
                                            ": ZeroDivisionError: expected a divisor of integers other than 0, got 0; "
                                            "mask the zeros or use floating point"));
  if (status & 2) throw_error(outside, str_cat(op, ": index out of range"));
}

}  // namespace strata::eager
