// Launch: hands a prepared space kernel to the device of its operands. Preparation (checks, sizes, memory) is the same
// for all devices; a device type registers one function that runs printed kernels there.
#pragma once
#include "run/observe.h"
#include "run/space.h"

namespace strata::eager {

// A scalar of a kernel, as its adapter reads it: 16 bytes.
struct Slot {
  alignas(16) char bytes[16] = {};
};

struct SpaceCall {
  const SpaceOp& op;
  const char* name;  // the operator, for errors
  DType dtype;       // of the kernel
  ArrayRef<const Tensor*> outs, ins;
  ArrayRef<Place> places;
  ArrayRef<Slot> scalars;
  ArrayRef<uint8_t> lists;   // per scalar of the text how many slots it has
  ArrayRef<Extent> extents;  // of reduced dims
  int index = -1;            // the input whose values say where a scatter's contributions go
};

using Launcher = int32_t (*)(const SpaceCall& call);  // gives the status word
void register_launcher(int device_type, Launcher launcher);

// Whether there is something to fill in `out`: elements, and not a shape alone.
inline bool has_elements_in_memory(const Tensor& out) { return out.numel() != 0 && !out.is_meta(); }
// The same for C++ that fills by hand, whose work no launch tells.
inline bool to_fill(const Tensor& out) {
  if (STRATA_UNLIKELY(out.is_meta())) tell_other();
  return has_elements_in_memory(out);
}

// Whether C++ has results to fill: of those that are there, shapes alone need none. The tensors that it reads, where it
// gives no result.
inline bool to_run(std::initializer_list<const Tensor*> results) {
  for (const Tensor* t : results)
    if (t->defined()) {
      if (STRATA_UNLIKELY(t->is_meta())) tell_other();
      return !t->is_meta();
    }
  return false;
}

// Runs the kernel on the device of its first output and gives the status word. Computed groups of more than kMaxGroup
// dims are done in turns: the kernel's index at a dim depends on that dim alone. Raises NotImplementedError for a
// device that runs no kernels.
int32_t launch(const SpaceCall& call);

}  // namespace strata::eager
