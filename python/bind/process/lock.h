// The interpreter lock in code that the core calls back (nodes, hooks, Python kernels), and Python objects that C++
// objects own: copied and dropped on any thread.
#pragma once
#include <memory>
#include <string>

#include "bind/types/types.h"

namespace strata::py {

// False before Python has begun and from the moment it ends: objects are then left alone.
bool interpreter_alive();

// Takes the lock for its scope; nests.
class HoldLock {
 public:
  HoldLock() : state_(PyGILState_Ensure()) {}
  ~HoldLock() { PyGILState_Release(state_); }
  HoldLock(const HoldLock&) = delete;

 private:
  PyGILState_STATE state_;
};

// Keeps the Python error that is set through code that runs Python again.
class KeepError {
 public:
  KeepError() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~KeepError() { PyErr_Restore(type_, value_, trace_); }

 private:
  PyObject *type_, *value_, *trace_;
};

// A counted reference that needs no lock to be copied or dropped.
using SharedObject = std::shared_ptr<PyObject>;
SharedObject share(PyObject* borrowed);

inline Own new_reference(PyObject* o) {
  Py_XINCREF(o);
  return Own(o);
}
// Calls that throw PythonError.
Own call_object(PyObject* callable, PyObject* args, PyObject* kwargs = nullptr);
Own get_attr(PyObject* o, const char* name);
Own find_attr(PyObject* o, const char* name);  // null when there is none
Own import_attr(const char* module, const char* name);
std::string text_of(PyObject* o);           // str(o)
std::string type_name(PyObject* o);         // of its type
std::string callable_source(PyObject* fn);  // "file.py:12 in name", for reports

// A tuple made of new references.
template <class... O>
Own make_tuple(O... items) {
  Own tuple(checked(PyTuple_New(sizeof...(O))));
  int i = 0;
  (PyTuple_SET_ITEM(tuple.get(), i++, checked(items)), ...);
  return tuple;
}

}  // namespace strata::py
