// The core's side of library.h: finds the optional library of matrix products and convolutions, opens it at first use
// and hands out its table. Without one, or switched off, every operation takes the generated kernels.
#pragma once
#include <string>

#include "core/dtype.h"
#include "vendor/library.h"

namespace strata::eager {

// Null when there is none, when it is switched off, or when it does not fit (another OpenMP runtime, another version).
// Its number of threads is this process's num_threads() by the time it is returned.
const StrataLibrary* library();
// Opens it and has it do what its first product would do beside computing, on the calling thread alone.
void prepare_library();
// Behind strata.backends.library(enabled). Off: as if no library were there. Returns the previous value.
bool set_library_enabled(bool enabled);
bool library_enabled();
// "oneDNN 2.6.3 (avx512_core_amx)", or why there is none.
std::string library_report();

// The library's name of a dtype, or -1.
inline int library_type(DType t) {
  return t == DType::F32 ? STRATA_LIBRARY_F32 : t == DType::BF16 ? STRATA_LIBRARY_BF16 : -1;
}
// True: done. False: unsupported, take another kernel. Anything else is raised as an error of `op`.
bool library_done(int status, const StrataLibrary& library, const char* op);

}  // namespace strata::eager
