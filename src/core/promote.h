// PyTorch's result types: tensors with dims outrank 0-dim tensors, which outrank Python numbers, within a category.
#pragma once
#include "core/tensor.h"

namespace strata {

class ResultType {
 public:
  void add(const Tensor& t);
  void add(const Scalar& s) { wrapped_ = join(wrapped_, s.dtype()); }
  void add(DType t) { dim_ = join(dim_, t); }
  DType get() const;  // raises when nothing was added
  // Whether the result type is complex32, float16 numbers with complex ones of lower rank: get() has no dtype for it.
  bool is_complex_half() const;

 private:
  using Maybe = std::optional<DType>;
  static Maybe join(Maybe a, DType b) { return a ? promote_types(*a, b) : b; }
  static Maybe combine(Maybe higher, Maybe lower);
  Maybe dim_, zero_, wrapped_;
};

// torch's class name of a dtype ("Float", "Long"), as its error texts have it.
const char* scalar_type_name(DType t);

// The common shape; raises the RuntimeError that PyTorch's users know.
DimVec broadcast_shapes(IntArrayRef a, IntArrayRef b);
// Raises unless both have memory on one device, or both have only a shape.
void check_same_device(const Tensor& a, const Tensor& b, const char* op);
// The same of an elementwise operator's operand, which may be a number on the CPU.
void check_operand_device(const Tensor& out, const Tensor& operand, const char* op);
// Of copies: only a tensor without values can be made from one.
[[noreturn]] void refuse_no_data(const char* op, Device device);
inline void check_has_data(const Tensor& to, const Tensor& from) {
  if (from.defined() && from.is_meta() && !to.is_meta()) refuse_no_data("copy_", to.device());
}
inline void check_stays(const Tensor& self, const std::optional<Device>& device) {
  if (device && self.is_meta() && *device != self.device()) refuse_no_data("to", *device);
}
// Two elements share memory within one tensor.
bool overlaps_itself(const Tensor& t);
enum class Overlap { None, Full, Partial };
Overlap overlap_between(const Tensor& a, const Tensor& b);

}  // namespace strata
