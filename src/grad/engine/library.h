// Operators and kernels that programs add while they run: what strata.library in Python and strata/library.h in C++ do.
#pragma once
#include "dispatch/boxed.h"
#include "grad/engine/variable.h"

namespace strata {

// Where a kernel is registered: a key, and for Key::Backend a device type or kCompositeSlot.
struct KeySlot {
  Key key;
  int device = 0;
  bool implicit = false;  // CompositeImplicitAutograd: made of operators that autograd records
};
// "CPU" or another device's name, "Autograd", "Meta", "CompositeImplicitAutograd", ...; raises Value with the list.
KeySlot parse_key(std::string_view name);
Slot& slot_at(Operator& op, KeySlot s);

// An operator of its own: results raise when they are differentiated until it has a derivative; what its schema says is
// written or a view is kept book of. Raises Value for a schema that does not parse, Runtime for a name that is taken.
Operator& define_operator(const std::string& schema_text);
// The kernel of a slot; gives what was there. Another one there is a warning unless `quiet`.
OperatorTable::Saved give_kernel(Operator& op, KeySlot slot, const BoxedKernel* kernel, const char* source, bool quiet);

// A node that raises `text` when a gradient reaches it; its outputs are aliases of `tensors`.
std::vector<Tensor> with_error_node(const std::string& name, const std::string& text, TensorList tensors,
                                    TensorList inputs);

// What libraries raised while they were loaded, since the last time that somebody asked.
void note_failure(std::string text);
std::vector<std::string> library_failures();

}  // namespace strata
