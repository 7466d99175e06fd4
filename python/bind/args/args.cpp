// The call of a generated entry: overrides first, then the overloads in order, then the operator.
#include "bind/args/args.h"

#include "bind/args/parse.h"
#include "bind/dispatch/modes.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

namespace {

// Objects of these types never have __torch_function__.
inline bool is_inert(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return reinterpret_cast<PyObject*>(t) == tensor_class || t == &PyLong_Type || t == &PyFloat_Type ||
         t == &PyBool_Type || o == Py_None || reinterpret_cast<PyObject*>(t) == parameter_class ||
         t == &PyUnicode_Type || t == dtype_type || t == device_type;
}

bool may_override(PyObject* o, int depth = 0) {
  if (is_inert(o)) return false;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    if (depth == kOverrideDepth) return false;
    Items items(o);
    for (Py_ssize_t i = 0; i < items.size(); ++i)
      if (!is_inert(items[i]) && may_override(items[i], depth + 1)) return true;
    return false;
  }
  PyObject* hook = _PyType_Lookup(Py_TYPE(o), name_torch_function);
  return hook && hook != disabled_torch_function;
}

bool any_override(const CallArgs& c) {
  if (STRATA_UNLIKELY(torch_function_mode_active())) return true;
  if (c.self && !is_inert(c.self) && may_override(c.self)) return true;
  Py_ssize_t n = c.nargs + (c.kwnames ? PyTuple_GET_SIZE(c.kwnames) : 0);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_inert(c.args[i]) && may_override(c.args[i])) return true;
  return false;
}

PyObject* invoke(const Overloads& overloads, const Signature& s, Frame& frame) noexcept {
  try {
    return s.invoke(frame.slots);
  } catch (const ItemError& e) {
    std::string argument;
    for (int i = 0; i < s.count; ++i)
      if (frame.slots[i] == e.list) argument = str_cat("argument '", s.args[i].name, "' ");
    set_error(PyExc_TypeError, str_cat(overloads.name, "(): ", argument, e.what()));
    return nullptr;
  } catch (...) {
    set_python_error(overloads.name);
    return nullptr;
  }
}

}  // namespace

PyObject* call(const Overloads& overloads, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  CallArgs c{self, args, nargs, kwnames};
  if (STRATA_UNLIKELY(any_override(c))) {
    PyObject* r = torch_function(overloads, self, args, nargs, kwnames);
    if (r || PyErr_Occurred()) return r;
  }
  const Prepared& p = prepared(overloads);
  Frame frame;
  for (int numbers = 0; numbers <= int(overloads.numbers); ++numbers) {
    for (int i = 0; i < overloads.count; ++i) {
      const Signature& s = overloads.signatures[i];
      if (self ? !s.method : !s.function) continue;
      if (fit(s, p.signatures[i], c, numbers != 0, frame, nullptr)) return invoke(overloads, s, frame);
      if (STRATA_UNLIKELY(PyErr_Occurred() != nullptr)) return nullptr;
    }
  }
  if (PyObject* r = call_old_form(overloads, c)) return r;
  if (!PyErr_Occurred()) raise_misfit(overloads, c);
  return nullptr;
}

}  // namespace strata::py
