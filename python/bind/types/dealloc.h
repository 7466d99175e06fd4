// Ends of objects.
#pragma once
#include <Python.h>

namespace strata::py {

// Of a heap type whose struct T holds C++ values behind its head.
template <class T>
void dealloc_of(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  reinterpret_cast<T*>(o)->~T();
  type->tp_free(o);
  Py_DECREF(type);
}

}  // namespace strata::py
