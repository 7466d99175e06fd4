// How calls of a graph are made, for all that make them: the keys that they run under, their stacks, their results.
#pragma once
#include "dispatch/tls.h"
#include "ir/graph.h"

namespace strata::ir {

// As a graph runs: below autograd and everything outside of it, and unrecorded.
class BelowAutograd {
 private:
  static constexpr KeySet kAll{(1u << kKeyCount) - 1};
  ExcludeGuard keys_{(kAll - kAll.below(Key::Autograd)) | KeySet(Key::Tracer)};
  GradModeGuard off_{false};
};

// Puts the numbers of a call's slots in their place.
void read_slots(const Node& call, Stack& stack);

// The arguments of a call; `value(v)` gives those that are values (v may be kNone).
template <class F>
Stack stack_of(const Node& call, F&& value) {
  Stack stack;
  stack.reserve(call.args.size());
  for (const Arg& a : call.args) {
    if (a.kind == Arg::List) {
      IValue::TensorVec list;
      list.reserve(a.values.size());
      for (Id v : a.values) {
        if constexpr (std::is_same_v<decltype(value(v)), Tensor>)
          list.push_back(value(v));
        else
          list.push_back(IValue(value(v)).template get<Tensor>());
      }
      stack.push_back(IValue(std::move(list)));
    } else {
      stack.push_back(a.kind == Arg::Constant ? a.constant : IValue(value(a.values[0])));
    }
  }
  return stack;
}

// Whether an operator that looks at indices has some to look at though its results have no elements: no launch does.
bool checks_alone(const Operator& op, const Stack& args, const Stack& results);

// Calls f with each tensor on a stack, those of lists too, in order; None is an undefined one.
template <class F>
void each_tensor(const Stack& stack, F&& f) {
  for (const IValue& v : stack) {
    if (v.is_tensor()) f(v.get<Tensor>());
    if (v.is_tensors())
      for (const Tensor& t : v.get<IValue::TensorVec>()) f(t);
    if (v.is_none()) f(Tensor());
  }
}

}  // namespace strata::ir
