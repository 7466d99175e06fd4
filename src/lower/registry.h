// The printed kernels, by instruction set: "base", "v3", "v4". The generated registry.cpp defines the table.
#pragma once
#include "lower/kernel_abi.h"

struct StrataIsaTable {
  const char* isa;
  const StrataKernelFile* const* files;
  int64_t count;
};
extern const StrataIsaTable strata_isa_tables[3];

// Space kernels, likewise; ends with a null isa.
struct StrataSpaceTable {
  const char* isa;
  const StrataSpaceFile* file;
};
extern const StrataSpaceTable strata_space_tables[];

// The matrix-product kernels that were printed (lower/print/gemm.h): each `kernel` points to a table laid out like
// ops/matmul/gemm.h's GemmKernel. Ends with a null isa.
struct StrataGemmTable {
  const char* isa;
  const char* dtype;  // DTypeTraits cname
  const void* kernel;
};
extern const StrataGemmTable strata_gemm_tables[];
