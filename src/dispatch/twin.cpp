// Functional twins that the table has no text for: the operator that writes, over copies of what it writes. One kernel
// serves them all, and who writes in what order, with which draws, stays said once.
#include "dispatch/boxed.h"
#include "dispatch/info.h"

namespace strata {

namespace {

void copy_first(const IValue& value, Stack& to) {
  static Operator& clone = OperatorTable::instance().get("aten::clone");
  Stack stack{value, IValue()};
  call_boxed(clone, stack);
  to.push_back(std::move(stack[0]));
}

// A copy of a tensor, or of each of a list.
IValue copied(const IValue& value) {
  Stack made;
  if (value.is_tensor()) {
    copy_first(value, made);
    return std::move(made[0]);
  }
  if (!value.is_tensors()) return value;
  IValue::TensorVec list;
  for (const Tensor& t : value.get<IValue::TensorVec>()) {
    made.clear();
    copy_first(IValue(t), made);
    list.push_back(made[0].get<Tensor>());
  }
  return IValue(std::move(list));
}

void over_copies(Operator& op, Dispatch, Stack& stack) {
  Operator& writing = twin_writes(op);
  const Schema& schema = writing.schema();
  Stack results;
  for (size_t i = 0; i < schema.args.size(); ++i)
    if (schema.args[i].type.written) results.push_back(stack[i] = copied(stack[i]));
  call_boxed(writing, stack);
  stack = std::move(results);
}

}  // namespace

Operator& define_twin(const char* schema_text, Operator& writing) {
  static const BoxedKernel kernel{over_copies, "a functional twin"};
  Operator& op = define_untyped(schema_text);
  op.record = writing.record;
  OperatorTable::instance().restore(op, Key::Backend, kCompositeSlot, {nullptr, &kernel, op.record + 1, false});
  return op;
}

}  // namespace strata
