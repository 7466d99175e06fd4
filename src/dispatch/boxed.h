// Calls over stacks, whatever an operator's C++ signature, and operators that have none: those defined at run time.
#pragma once
#include "dispatch/operator.h"

namespace strata {

// Keys and device of the tensors and devices on the stack, in this thread's mode.
Dispatch dispatch_of_stack(const Stack& args);
// The whole operator: takes the arguments from the stack and leaves the results.
void call_boxed(Operator& op, Stack& stack);
// What is left to pass of a call.
void redispatch_boxed(Operator& op, Dispatch d, Stack& stack);
// Runs the kernel of one slot as it was saved by OperatorTable::impl; false when that slot was empty.
bool run_saved(Operator& op, const OperatorTable::Saved& kernel, Dispatch d, Stack& stack);

// An operator without a C++ signature. Raises Value for a schema that does not parse.
Operator& define_boxed(const std::string& schema_text);
// The same of a text that parses and lives for ever.
Operator& define_untyped(const char* schema_text);
// The functional twin of an operator of the table that writes, with the schema that gen/ made of that one's: its
// arguments, unwritten, and as results what they become.
Operator& define_twin(const char* schema_text, Operator& writing);
// A copy of `text` that lives for ever, one per text: sources of kernels, names for events.
const char* lasting_text(const std::string& text);

// The written tensors of a schema among `args`.
std::vector<Tensor> written_tensors(const Schema& schema, const Stack& args);

}  // namespace strata
