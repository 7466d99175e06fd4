// Rules of LLVM's may undo each other's work for ever, and it counts no turns: this does.
#pragma once
#include "worker.h"

namespace strata_clang {

// Thrown from inside of LLVM; the worker must not be used again.
struct Endless : Fatal {};

// While one stands, its thread may replace a million values, or STRATA_CLANG_LIMIT, most in a second. A long text needs
// some thousands.
class Limit {
 public:
  Limit();
  ~Limit();
  Limit(const Limit&) = delete;
};

}  // namespace strata_clang
