// What one run of a plan needs: where each block is, and the state of the generator at the beginning of each stretch of
// draws.
#pragma once
#include "base/inline_vec.h"
#include "jit/compile/plan.h"

namespace strata::jit {

struct Plan::Frame {
  struct Place {
    char* base = nullptr;  // of memory that the host reaches
    Ref<Storage> storage;
    int64_t offset = 0;  // bytes from the storage's beginning to the block
  };
  TensorList params;
  InlineVec<Place, 12> at;
  InlineVec<PhiloxState, 2> stretches;
  DeviceReplays::Run* kept = nullptr;  // launches that are given later
};

}  // namespace strata::jit
