// The loop under operators that address one operand (the target) through indices along one dim, while another operand
// is walked plainly. Results never depend on threads: positions with the same target are visited in ascending order of
// the indexed dim, by one thread.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

// A run of `count` positions: steps are in bytes; a position's target element is target + k * target_step +
// index value * scale.
struct IndexRun {
  char* target;
  int64_t target_step;
  const char* index;  // int64 values
  int64_t index_step;
  char* other;
  int64_t other_step;
  int64_t count, scale;
};
using IndexRunFn = void (*)(void* context, const IndexRun& run);

struct IndexWalk {
  struct Dim {
    int64_t size, target, index, other;  // byte steps; for the indexed dim `target` is the scale of index values
  };
  char* target = nullptr;
  const char* index = nullptr;
  char* other = nullptr;
  SmallVec<Dim, 8> dims;  // those walked plainly
  Dim along{1, 0, 0, 0};  // the indexed one
  bool reads = false;     // the target is only read: any order will do

  // Positions are those of `index` (int64); `other` may be undefined, and may be larger than index.
  static IndexWalk along_dim(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& other);
  // Positions are those of `other`; the index is 1-d (or one value) and stands for dim of `other`.
  static IndexWalk along_rows(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& other);
  void run(IndexRunFn fn, void* context) const;

  template <class F>
  void operator()(F f) const {
    run([](void* c, const IndexRun& r) { (*static_cast<F*>(c))(r); }, &f);
  }
};

// Moves of elements of one width: other <- target, target <- other, and target <- one value.
void read_indexed(const IndexWalk& walk, int64_t width);
void write_indexed(const IndexWalk& walk, int64_t width);

}  // namespace strata::eager
