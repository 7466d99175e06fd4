// __torch_function__ and __torch_dispatch__: who is asked, and in what order.
#pragma once
#include "bind/process/lock.h"
#include "dispatch/operator.h"

namespace strata::py {

// Called for a tensor that has just got a Python object of class `type`: sets Key::Python where the class defines
// __torch_dispatch__.
void note_subclass(const Tensor& t, PyTypeObject* type);
bool has_torch_dispatch(PyTypeObject* type);

// So deep in lists and tuples are arguments looked for that want to be asked; a list may contain itself.
constexpr int kOverrideDepth = 3;

// The arguments' types that want to be asked, subclasses before their bases, else from left to right.
struct Overloaded {
  std::vector<Own> args;
  void add(PyObject* o);                        // when its class defines __torch_function__
  void add_nested(PyObject* o, int depth = 0);  // and the items of lists and tuples
};
// The public function of a generated entry: strata.add, or strata.Tensor.add for methods. Borrowed, cached.
PyObject* public_function(const char* name, bool method);
// Asks modes, then types. New reference; null with an error set, or null without one when nobody is to be asked.
PyObject* ask_torch_function(PyObject* func, const Overloaded& overloaded, PyObject* args, PyObject* kwargs);
bool torch_function_enabled();

void init_dispatch_modes(PyObject* module);

// The Python object of an operator: strata.ops.aten.add.Tensor. Borrowed.
PyObject* operator_object(Operator& op);
// PyTorch's functions of arithmetic have no overload for a number: handlers look for the tensors' one, and may call it
// with the number. Of add.Scalar and its like add.Tensor, or the other way round (`numbers`); other operators
// themselves.
Operator& beside_numbers(Operator& op, bool numbers);
Operator& operator_of(PyObject* o);  // an OpOverload, or the name of one
bool is_operator(PyObject* o);
void init_operator(PyObject* module);
void init_record(PyObject* module);

}  // namespace strata::py
