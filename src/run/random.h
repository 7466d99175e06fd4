// Draws from a Philox stream through generated kernels. Element i of a draw, in row-major order, takes the i-th word,
// or the i-th pair of words, of the counters that the draw reserves.
#pragma once
#include "core/generator.h"
#include "core/tensor.h"
#include "run/pointwise.h"

namespace strata::eager {

Generator or_default(const Generator& generator, const Tensor& like);
// Raises for one of another type of device.
void check_generator(const Generator& generator, Device device);

// A kernel whose first operand is words of the stream.
struct DrawOp {
  const PointwiseOp& kernel;
  uint32_t dtypes;  // that it makes, a bit each
  uint32_t pairs;   // of these, those that take two words an element
};

struct DrawOperand {
  const Tensor& tensor;  // broadcast to the result
  DType dtype;
};

struct DrawNumber {
  Scalar value;
  int8_t dtype;  // -1: that of the elements
};

// Draws into a tensor of any strides. A kernel of one dtype serves all others, which it is converted to; others raise
// NotImplementedError. A tensor without elements or without memory consumes nothing.
void draw(const DrawOp& op, const Tensor& out, ArrayRef<DrawOperand> operands, ArrayRef<DrawNumber> numbers,
          const Generator& generator);

// A draw as LaunchObserver::draw tells it, by the words from `state` on: `out` is contiguous, of the kernel's dtype,
// and so are the operands, which have its sizes.
void draw_at(const DrawOp& op, DType dtype, const Tensor& out, TensorList operands, ArrayRef<DrawNumber> numbers,
             PhiloxState state);
// The number of 32-bit words that an element takes.
inline int64_t words_each(const DrawOp& op, DType dtype) { return op.pairs >> int(dtype) & 1 ? 2 : 1; }

}  // namespace strata::eager
