// Launch: runs a prepared space kernel. Preparation (checks, sizes, memory) is the same for all devices: what is
// launched over shapes alone is told (run/observe.h), and a device runs that (device/).
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
  int index = -1;            // the input whose values are places: those of a scatter's contributions, those to read
  ErrorKind outside = ErrorKind::Index;  // of the error where one of them is none
};

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

// Runs the kernel and gives the status word. Computed groups of more than kMaxGroup dims are done in turns: the
// kernel's index at a dim depends on that dim alone.
int32_t launch(const SpaceCall& call);

}  // namespace strata::eager
