#include "bind/process/lock.h"

namespace strata::py {

bool interpreter_alive() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

SharedObject share(PyObject* borrowed) {
  Py_INCREF(borrowed);
  return SharedObject(borrowed, [](PyObject* o) {
    if (!interpreter_alive()) return;
    HoldLock lock;
    KeepError error;
    Py_DECREF(o);
  });
}

Own call_object(PyObject* callable, PyObject* args, PyObject* kwargs) {
  return Own(checked(PyObject_Call(callable, args, kwargs)));
}

Own get_attr(PyObject* o, const char* name) { return Own(checked(PyObject_GetAttrString(o, name))); }

Own find_attr(PyObject* o, const char* name) {
  PyObject* found = PyObject_GetAttrString(o, name);
  if (!found) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError();
    PyErr_Clear();
  }
  return Own(found);
}

Own import_attr(const char* module, const char* name) {
  Own m(checked(PyImport_ImportModule(module)));
  return get_attr(m.get(), name);
}

std::string text_of(PyObject* o) {
  Own text(checked(PyObject_Str(o)));
  const char* utf8 = PyUnicode_AsUTF8(text.get());
  if (!utf8) throw PythonError();
  return utf8;
}

std::string type_name(PyObject* o) {
  std::string name = Py_TYPE(o)->tp_name;
  return name.substr(name.rfind('.') + 1);
}

std::string callable_source(PyObject* fn) {
  KeepError error;
  std::string text;
  try {
    Own inner = find_attr(fn, "__wrapped__");
    Own code = find_attr(inner ? inner.get() : fn, "__code__");
    if (code) {
      text = text_of(get_attr(code.get(), "co_filename").get()) + ":" +
             text_of(get_attr(code.get(), "co_firstlineno").get()) + " in " +
             text_of(get_attr(code.get(), "co_name").get());
    } else {
      text = text_of(fn);
    }
  } catch (const PythonError&) {
    PyErr_Clear();
    text = "a Python callable";
  }
  return text;
}

}  // namespace strata::py
