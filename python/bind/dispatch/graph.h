// Graphs as Python sees them: a capsule each.
#pragma once
#include "bind/dispatch/stack.h"
#include "bind/tensor/tensor.h"
#include "ir/graph.h"

namespace strata::py {

// A capsule that owns a T, and what is in it. `name` tells kinds apart; a wrong capsule raises.
template <class T>
PyObject* wrap_capsule(T value, const char* name) {
  return checked(PyCapsule_New(new T(std::move(value)), name, [](PyObject* o) {
    delete static_cast<T*>(PyCapsule_GetPointer(o, PyCapsule_GetName(o)));
  }));
}
template <class T>
T& in_capsule(PyObject* o, const char* name) {
  auto* value = static_cast<T*>(PyCapsule_GetPointer(o, name));
  if (!value) throw PythonError();
  return *value;
}

inline constexpr const char* kGraph = "strata.graph";
inline const ir::Graph& graph_of(PyObject* o) { return in_capsule<ir::Graph>(o, kGraph); }
inline PyObject* wrap_graph(ir::Graph graph) { return wrap_capsule(std::move(graph), kGraph); }

inline PyObject* tensor_list(TensorList tensors) {
  Own list(checked(PyList_New(Py_ssize_t(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), wrap(Tensor(tensors[i])));
  return list.release();
}

inline std::vector<int> ints(PyObject* o) {
  std::vector<int> out;
  Own items(checked(PySequence_Tuple(o)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    const long v = PyLong_AsLong(PyTuple_GET_ITEM(items.get(), i));
    if (v == -1 && PyErr_Occurred()) throw PythonError();
    if (v != int(v)) throw_error(ErrorKind::Value, "expected a small integer");
    out.push_back(int(v));
  }
  return out;
}

void init_compiled(PyObject* module);
void init_guards(PyObject* module);
void init_blocks(PyObject* module);

}  // namespace strata::py
