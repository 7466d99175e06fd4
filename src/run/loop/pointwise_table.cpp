// Functions of one operand of two bytes, over long arrays: an element has 65,536 values, for all of which a long text
// is computed once. To look up an element takes a few instructions, and the bits are the kernel's own.
#include <memory>
#include <numeric>

#include "core/parallel.h"
#include "run/loop/pointwise_loop.h"

namespace strata::eager {

namespace {

constexpr int64_t kValues = 65536;

}  // namespace

bool PointwiseLoop::looks_up(const StrataKernelEntry& kernel) const {
  if (!kernel.costly || kernel.sets_status || count_ != 2 || outputs_ != 1) return false;
  const Operand &out = operands_[0], &in = operands_[1];
  return out.ordered && in.ordered && !in.maker && itemsize(out.dtype) == 2 && itemsize(in.dtype) == 2;
}

int32_t PointwiseLoop::run_looked_up(const StrataKernelEntry& kernel, const void* params, int64_t n) const {
  std::unique_ptr<uint16_t[]> values(new uint16_t[2 * kValues]);
  uint16_t* const table = values.get() + kValues;
  std::iota(values.get(), table, uint16_t(0));
  PointwiseLoop all(IntArrayRef(&kValues, 1));
  all.count_ = count_;
  all.outputs_ = outputs_;
  for (int i = 0; i < count_; ++i) {
    all.operands_[i].base = reinterpret_cast<char*>(i == 0 ? table : values.get());
    all.operands_[i].strides = {2};
    all.operands_[i].dtype = operands_[i].dtype;
    all.operands_[i].kernel = operands_[i].kernel;
    all.operands_[i].output = operands_[i].output;
  }
  if (const int32_t status = all.run(kernel, params)) return status;
  auto* const out = reinterpret_cast<uint16_t*>(operands_[0].base);
  const auto* const in = reinterpret_cast<const uint16_t*>(operands_[1].base);
  parallel_for(0, n, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = table[in[i]];
  });
  return 0;
}

}  // namespace strata::eager
