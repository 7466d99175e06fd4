// Windows of pooling and the volumes that they slide over: a tensor with channels and perhaps a batch as a stack of
// depth x height x width volumes, of depth 1 where two dims are pooled.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

// One spatial dim: where window i begins and ends in [0, size), and the step between its elements.
struct WindowAxis {
  int64_t size = 1, count = 1;                                // of the input, of the windows
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;  // sliding windows
  bool even = false;                                          // windows that cover the dim evenly instead

  int64_t begin(int64_t i) const;   // the first element inside
  int64_t end(int64_t i) const;     // one past the last
  int64_t padded(int64_t i) const;  // elements that count when padding does
};

struct Volumes {
  int64_t count = 1;  // batch * channels
  WindowAxis depth, rows, cols;
  DimVec output;  // sizes of the result
  // That of the result: batches of planes keep theirs, of volumes where an operator says so, as in PyTorch.
  MemoryFormat format = MemoryFormat::Contiguous;
  int64_t size() const { return depth.size * rows.size * cols.size; }
  int64_t windows() const { return depth.count * rows.count * cols.count; }
};

// Check the arguments as PyTorch does; `rank` dims (2 or 3) are pooled. An empty stride is the kernel.
Volumes sliding_volumes(const char* op, int64_t rank, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef dilation, bool ceil_mode);
Volumes even_volumes(const char* op, int64_t rank, const Tensor& self, IntArrayRef output_size);
// Gradients go to the elements that `indices` names in each volume, in the order of the windows.
Tensor max_pool_backward(const char* op, int64_t rank, const Tensor& grad, const Tensor& self, const Tensor& indices);
// The format of a batch of planes (or volumes); planes without a batch have none.
MemoryFormat batch_format(int64_t rank, const Tensor& self);

}  // namespace strata::eager
