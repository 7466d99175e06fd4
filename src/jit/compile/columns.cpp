#include "jit/compile/columns.h"

#include <algorithm>

namespace strata::jit {

namespace {

constexpr int64_t kVector = 16;

bool is_reduced(const Fused& f, size_t dim) {
  return std::find(f.reduced.begin(), f.reduced.end(), int64_t(dim)) != f.reduced.end();
}

// The dim along which they lie side by side, or -1.
int columns_dim(const Fused& f) {
  for (const auto* list : {&f.outs, &f.ins})
    for (const FusedOperand& o : *list)
      for (size_t d = 0; d < f.shape.size(); ++d)
        if (!o.per_row && !is_reduced(f, d) && f.shape[d] > 1 && o.strides[d] == 1) return int(d);
  return -1;
}

}  // namespace

bool lay_columns(Fused& f) {
  const int columns = columns_dim(f);
  if (columns < 0) return false;
  const auto one = std::count_if(f.reduced.begin(), f.reduced.end(), [&](int64_t d) { return f.shape[size_t(d)] > 1; });
  if (one != 1 || f.shape[size_t(columns)] < kVector) return true;
  for (size_t i = 0; i < f.ins.size(); ++i) {
    const int64_t step = f.ins[i].strides[size_t(columns)];
    f.kernel.inputs[i].broadcast = f.ins[i].per_row ? step == 1 : step == 0;
  }
  return true;
}

}  // namespace strata::jit
