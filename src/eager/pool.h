// Windows of pooling and the planes that they slide over: a tensor of 3 or 4 dims as a stack of height x width planes.
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

struct Planes {
  int64_t count;  // batch * channels
  WindowAxis rows, cols;
  DimVec output;  // sizes of the result
};

// Checks the arguments as PyTorch does. An empty stride is the kernel.
Planes sliding_planes(const char* op, const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                      IntArrayRef dilation, bool ceil_mode);
Planes even_planes(const char* op, const Tensor& self, IntArrayRef output_size);

}  // namespace strata::eager
