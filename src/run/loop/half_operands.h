// Operands of an operator that computes on float16 by float32's kernel: those of another dtype are rounded to float16
// before it, and results that go to another dtype are rounded to float16 on their way.
#pragma once
#include <vector>

#include "run/copy.h"
#include "run/kernels.h"

namespace strata::eager {

class HalfOperands {
 public:
  HalfOperands(const StrataKernelEntry& entry, DType t, uint32_t fixed, ArrayRef<const Tensor*> outs,
               ArrayRef<const Tensor*> in)
      : entry_(entry), t_(t), fixed_(fixed), outs_(outs), in_(in) {}

  bool differ() const {
    for (size_t i = 0; i < outs_.size(); ++i)
      if (outs_[i]->dtype() != result_dtype(entry_, i, t_)) return true;
    for (size_t i = 0; i < in_.size(); ++i)
      if (rounded(i)) return true;
    return false;
  }
  // Where the kernel writes and what it reads.
  ArrayRef<const Tensor*> outs() {
    for (size_t i = 0; i < outs_.size(); ++i) {
      const DType d = result_dtype(entry_, i, t_);
      made_.push_back(outs_[i]->dtype() == d ? *outs_[i] : new_tensor(*outs_[i], outs_[i]->sizes(), d));
    }
    return list(made_, out_list_);
  }
  ArrayRef<const Tensor*> in() {
    for (size_t i = 0; i < in_.size(); ++i) given_.push_back(rounded(i) ? as_dtype(*in_[i], t_) : *in_[i]);
    return list(given_, in_list_);
  }
  // After the kernel: what was written goes on.
  void give() const {
    for (size_t i = 0; i < outs_.size(); ++i)
      if (!made_[i].is_same(*outs_[i])) copy_values(*outs_[i], made_[i]);
  }

 private:
  bool rounded(size_t i) const { return !(fixed_ >> i & 1) && in_[i]->dtype() != t_; }
  static ArrayRef<const Tensor*> list(const std::vector<Tensor>& from, std::vector<const Tensor*>& to) {
    for (const Tensor& t : from) to.push_back(&t);
    return {to.data(), to.size()};
  }

  const StrataKernelEntry& entry_;
  DType t_;
  uint32_t fixed_;
  ArrayRef<const Tensor*> outs_, in_;
  std::vector<Tensor> made_, given_;
  std::vector<const Tensor*> out_list_, in_list_;
};

}  // namespace strata::eager
