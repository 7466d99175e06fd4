// The printed kernels, by instruction set: "base", "v3", "v4". The generated registry.cpp defines the table.
#pragma once
#include "lower/kernel_abi.h"

struct StrataIsaTable {
  const char* isa;
  const StrataKernelFile* const* files;
  int64_t count;
};
extern const StrataIsaTable strata_isa_tables[3];
