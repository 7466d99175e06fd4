// Errors and warnings at the boundary, and the small helpers that hand-written bindings share.
#include <cstring>
#include <new>
#include <stdexcept>

#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

PyObject* out_of_memory_error;
PyObject* linalg_error;
PyObject* name_torch_function;
PyObject* disabled_torch_function;

namespace {

PyObject* python_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return out_of_memory_error;
    case ErrorKind::Key:
      return PyExc_KeyError;
    case ErrorKind::Attribute:
      return PyExc_AttributeError;
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
    case ErrorKind::FileNotFound:
      return PyExc_FileNotFoundError;
    case ErrorKind::LinAlg:
      return linalg_error;
    case ErrorKind::Runtime:
    case ErrorKind::Internal:
      return PyExc_RuntimeError;
  }
  return PyExc_RuntimeError;
}

// Runs on any thread, with or without the lock. A filter that turns warnings into errors raises where the warning is.
void warn_python(const std::string& message) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  int failed = PyErr_Occurred() ? 0 : PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1);
  PyGILState_Release(state);
  if (failed) throw PythonError();
}

}  // namespace

// Many texts are PyTorch's, word for word, and name no operator.
std::string with_operator(const char* what, std::string_view op) {
  std::string text = what;
  while (op.ends_with('_')) op.remove_suffix(1);
  while (op.starts_with('_')) op.remove_prefix(1);
  if (op.empty() || text.find(op) != std::string::npos) return text;
  return str_cat(text, " (in ", op, ")");
}

namespace {
void translate(std::string_view op) {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "strata: an error was reported without its text");
  } catch (const Error& e) {
    set_error(python_type(e.kind()), with_operator(e.what(), op));
  } catch (const std::length_error& e) {
    set_error(out_of_memory_error, with_operator(e.what(), op));
  } catch (const std::bad_alloc&) {
    set_error(out_of_memory_error,
              with_operator("strata: out of memory in what an operator keeps beside its result", op));
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, with_operator(e.what(), op));
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "strata: an unknown C++ exception");
  }
}
}  // namespace

void set_python_error(std::string_view op) noexcept {
  try {
    translate(op);
  } catch (...) {  // no memory for the text
    PyErr_SetString(out_of_memory_error, "strata: out of memory");
  }
}

std::string shown_text(PyObject* string) {
  Own bytes(PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace"));
  if (!bytes) {
    PyErr_Clear();
    return "?";
  }
  return {PyBytes_AS_STRING(bytes.get()), size_t(PyBytes_GET_SIZE(bytes.get()))};
}

void set_error(PyObject* type, std::string_view text) {
  Own message(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "backslashreplace"));
  if (message) PyErr_SetObject(type, message.get());
}

void raise(PyObject* type, const std::string& text) {
  set_error(type, text);
  throw PythonError();
}

PyTypeObject* add_type(PyObject* module, PyType_Spec* spec, PyObject* base) {
  PyObject* type = checked(PyType_FromSpecWithBases(spec, base));
  const char* dot = std::strrchr(spec->name, '.');
  checked(PyObject_SetAttrString(module, dot ? dot + 1 : spec->name, type));
  return reinterpret_cast<PyTypeObject*>(type);
}

void add_object(PyObject* module, const char* name, PyObject* object) {
  Own owned(checked(object));
  checked(PyObject_SetAttrString(module, name, object));
}

void add_functions(PyObject* module, PyMethodDef* methods) { checked(PyModule_AddFunctions(module, methods)); }

void read_args(const char* function, std::initializer_list<const char*> names, int keyword_only, PyObject** values,
               PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, int required) {
  const char* const* name = names.begin();
  const int count = int(names.size());
  if (nargs > keyword_only)
    raise(PyExc_TypeError,
          str_cat(function, "() takes ", keyword_only, " positional argument", keyword_only == 1 ? "" : "s", " but ",
                  nargs, nargs == 1 ? " was" : " were", " given"));
  uint64_t given = 0;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    values[i] = args[i];
    given |= uint64_t(1) << i;
  }
  Py_ssize_t n = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(kwnames, k);
    int i = 0;
    while (i < count && PyUnicode_CompareWithASCIIString(keyword, name[i]) != 0) ++i;
    if (i == count)
      raise(PyExc_TypeError, str_cat(function, "() got an unexpected keyword argument '", shown_text(keyword), "'"));
    if (given >> i & 1)
      raise(PyExc_TypeError, str_cat(function, "() got multiple values for argument '", name[i], "'"));
    given |= uint64_t(1) << i;
    values[i] = args[nargs + k];
  }
  for (int i = 0; i < required; ++i)
    if (!(given >> i & 1))
      raise(PyExc_TypeError, str_cat(function, "() missing 1 required positional arguments: \"", name[i], "\""));
}

void init_errors(PyObject* module) {
  name_torch_function = checked(PyUnicode_InternFromString("__torch_function__"));
  out_of_memory_error = checked(PyErr_NewExceptionWithDoc(
      "strata.OutOfMemoryError", "An allocator of a device could not give the memory asked for.", PyExc_RuntimeError,
      nullptr));
  add_object(module, "OutOfMemoryError", Py_NewRef(out_of_memory_error));
  linalg_error = checked(
      PyErr_NewExceptionWithDoc("strata.linalg.LinAlgError",
                                "A matrix is singular, not positive definite, or an algorithm does not converge on it.",
                                PyExc_RuntimeError, nullptr));
  add_object(module, "_LinAlgError", Py_NewRef(linalg_error));
  set_warning_handler(warn_python);
}

}  // namespace strata::py
