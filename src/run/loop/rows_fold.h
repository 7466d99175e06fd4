// Results of parts of a row, and the buffers of a thread that works on rows.
#pragma once
#include <cstdint>
#include <memory>

#include "lower/kernel_abi.h"

namespace strata::eager {

constexpr int64_t kPart = 65536;  // elements in a super-chunk of tree T

// A slot of a reduction.
struct alignas(16) Value {
  char bytes[16];
};

// Folds partial results pairwise in order: (0 1) (2 3) ..., then the pairs, an odd last one going up as it is.
Value fold(const StrataReduction& how, Value* v, int64_t n);
// The result of a reduction over nothing. Maxima have none; the caller has refused them.
Value identity(const StrataReduction& how);

// Buffers of one thread.
struct Workspace {
  std::unique_ptr<char[]> memory;
  size_t size = 0;
  char* get(size_t bytes) {
    bytes += 64;
    if (bytes > size) {
      memory.reset(new char[bytes]);
      size = bytes;
    }
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) & ~uintptr_t(63));
  }
};

// The calling thread's, for whoever works on parts of long rows.
Workspace& part_workspace();

}  // namespace strata::eager
