// Operators that the table says as space kernels: what generated code calls before and after their shape rules. The
// rule, the memory and the checks are the same for every device; only eager::launch knows where kernels run.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "core/default_device.h"
#include "core/shape/rules.h"
#include "core/tensor.h"
#include "run/launch.h"
#include "run/pointwise.h"

namespace strata::eager {

struct SpaceInput {
  const char* name;
  static constexpr int8_t kSame = -2;
  int8_t dims = -1;  // how many its pattern names; -1: it has a group
  int8_t as = -1;    // the dtype that it is converted to; -1: none, kSame: the kernel's
};

struct SpaceInfo {
  eager::SpaceOp op;
  const char* name;  // of the operator
  ArrayRef<SpaceInput> inputs;
  int8_t output_dims;  // as an input's; of all outputs
  bool width;          // elements are only moved: the kernel goes by their width
  bool wide;           // the result's elements are of the type that the kernel computes in
  bool fixed;          // the first result has a dtype of its own: the kernel goes by its first input
  uint32_t dtypes;     // else: of elements that it computes with, a bit each
  // `checked` and `wrapped` indices: the input that holds them (-1: none), and the error where one is outside. In its
  // text {value}, {dim} and {size} stand for numbers.
  int8_t index;
  bool wraps;
  ErrorKind kind;
  const char* outside;
};

// A scalar of the kernel: the operator's number, or (null) one that the rule computed under this name, an int64.
struct SpaceScalar {
  static constexpr int8_t kElement = -1, kWidest = -2;  // widest: int64 for integers, float64 for all others
  const char* name;
  const Scalar* number = nullptr;
  int8_t dtype = kElement;
};

inline shape::Geometry<int64_t> geometry(const Tensor& t) {
  if (!t.defined()) return {};
  return {t.sizes(), t.strides(), t.dtype(), t.device(), true};
}

// Raises unless all are tensors of one device.
void check_operands(const SpaceInfo& info, ArrayRef<const Tensor*> ins);
// Of C++ that fills what a rule prepares: a tensor that is there, or may be None, of the first one's device.
void check_operand(const char* op, const char* name, const Tensor& t, const Tensor& first);
inline void check_optional(const char* op, const char* name, const Tensor& t, const Tensor& first) {
  if (t.defined()) check_operand(op, name, t, first);
}
// Raises NotImplementedError where the kernel does not compute with the dtype of `t`.
void check_dtype(const SpaceInfo& info, const Tensor& t);
// Memory for a result of the kind of `like`.
Tensor new_result(const Tensor& like, const shape::Output<int64_t>& output, ResultStrides strides);
// Result k of what C++ fills, whose strides the rule may say, if it is no None.
Tensor new_result(const Tensor& like, const shape::Prepared<int64_t>& prepared, size_t k, ResultStrides strides);
Tensor new_result(Device device, const shape::Output<int64_t>& output);
// On `device`, else as `like`, which is shape-only unless another device is asked for.
Tensor new_result(const Tensor& like, const std::optional<Device>& device, const shape::Output<int64_t>& output);
// In a format, without one like `like`.
Tensor new_result(const Tensor& like, const shape::Output<int64_t>& output, std::optional<MemoryFormat> format,
                  const std::optional<Device>& device = std::nullopt);
// Memory without values. Layouts of a kept format are like `like`.
Tensor allocate_in(const shape::Layout<int64_t>& layout, Device device, bool meta, const Tensor* like);
inline Tensor allocate(const shape::Layout<int64_t>& layout, Device device) {
  if (STRATA_LIKELY(!layout.strided && layout.format == MemoryFormat::Contiguous))
    return make_tensor(layout.sizes, layout.dtype, device);
  return allocate_in(layout, device, false, nullptr);
}
Tensor allocate(const shape::Layout<int64_t>& layout, const Tensor& like, const std::optional<Device>& device);
// Of out= forms.
void refuse_format(const std::optional<MemoryFormat>& format, const char* name);
// Whether C++ beside the text fills `result`: on the CPU, but where a test runs the text, or nothing is to be done.
inline bool by_hand(const SpaceInfo& info, const Tensor& result) {
  return result.filled_by() == 0 && result.numel() != 0 && !eager::replaced(info.op);
}
// The same of C++ beside a plan, by the tensors that it reads. Those without memory run the plan.
inline bool by_hand(const Tensor& t) { return !t.defined() || (t.filled_by() == 0 && !eager::replaced()); }
inline bool by_hand(const std::optional<Device>& device) {
  return device.value_or(default_device()).is_cpu() && !MetaGuard::active() && !eager::replaced();
}
inline bool by_hand(TensorList list) {
  return std::all_of(list.begin(), list.end(), [](const Tensor& t) { return by_hand(t); });
}
// Runs the kernel over tensors that have memory; an index outside raises.
void launch_space(const SpaceInfo& info, std::initializer_list<const Tensor*> outs, ArrayRef<const Tensor*> ins,
                  const shape::Prepared<int64_t>& prepared, ArrayRef<SpaceScalar> scalars = {});
// The same of a kernel without operands, whose scalars are numbers.
void launch_factory(const SpaceInfo& info, const Tensor& out, ArrayRef<SpaceScalar> scalars = {});
// Scatters into `result`, which begins as `start` (null: zeros) and may be `start`: in place nothing is written when an
// index is outside. Sums of half types are taken in float32.
void scatter_space(const SpaceInfo& info, const Tensor& result, const Tensor* start, ArrayRef<const Tensor*> ins,
                   const shape::Prepared<int64_t>& prepared, ArrayRef<SpaceScalar> scalars = {});

}  // namespace strata::eager
