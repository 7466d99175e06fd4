// Draws from a Philox stream through generated kernels. Element i of a draw, in row-major order, takes the i-th word,
// or the i-th pair of words, of the counters that the draw reserves.
#pragma once
#include "core/generator.h"
#include "core/tensor.h"

namespace strata::eager {

Generator or_default(const Generator& generator, const Tensor& like);

// Scalars of a kernel, in 16-byte slots.
class DrawParams {
 public:
  void add(const Scalar& value, DType dtype);
  const void* data() const { return slots_; }

 private:
  alignas(16) char slots_[64];
  int count_ = 0;
};

// Runs the kernel `name`, printed for `dtype`, over all of `out`, which is contiguous and has the kernel's output
// dtype. `words`: 32-bit words an element, 1 or 2. `each`: a contiguous float32 operand with one value per element, or
// none.
void draw(const char* name, DType dtype, const Tensor& out, int words, const DrawParams& params, PhiloxState state,
          const Tensor* each = nullptr);

// Writes draws into tensors of any strides. They reserve their words even for tensors that end up unused, and none when
// the tensor is shape-only.
void fill_uniform(const Tensor& out, double low, double high, const Generator& generator);
void fill_normal(const Tensor& out, double mean, double std, const Generator& generator);
void fill_exponential(const Tensor& out, double rate, const Generator& generator);
void fill_cauchy(const Tensor& out, double median, double sigma, const Generator& generator);
void fill_bernoulli(const Tensor& out, double p, const Generator& generator);
void fill_bernoulli(const Tensor& out, const Tensor& p, const Generator& generator);
// low + [0, span); span 0 stands for 2^64.
void fill_integers(const Tensor& out, int64_t low, uint64_t span, const Generator& generator);

}  // namespace strata::eager
