// Stacks of boxed values as Python arguments and back, by an operator's schema. Errors name the operator, what was
// expected and what came.
#pragma once
#include "bind/process/lock.h"
#include "dispatch/operator.h"

namespace strata::py {

PyObject* to_python(const IValue& value, const TypeSpec& type);
IValue from_python(PyObject* o, const TypeSpec& type);  // the kind must fit
bool fits(PyObject* o, const TypeSpec& type);

// Arguments of a Python call as a full stack, defaults filled in. `kwargs` may be null.
void args_to_stack(const Operator& op, PyObject* args, PyObject* kwargs, Stack& stack);
bool args_fit(const Operator& op, PyObject* args, PyObject* kwargs);  // without an error set
// Values that equal their default are left out at the end of the positional ones and among the keywords.
struct PythonArgs {
  Own args, kwargs;
};
PythonArgs stack_to_args(const Operator& op, const Stack& stack);
// None, one value, or a tuple.
Own results_to_python(const Operator& op, const Stack& results);
// What a Python kernel returned. `args` are the kernel's own: a written argument stands for a missing result.
void results_from_python(const Operator& op, PyObject* result, const Stack& args, const std::string& source,
                         Stack& results);

}  // namespace strata::py
