// Hand-written methods of tensors and how they are bound: overrides are asked first, C++ errors become Python's.
#pragma once
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

using MethodBody = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// A string as a template argument.
template <size_t N>
struct Text {
  char value[N];
  constexpr Text(const char (&text)[N]) {
    for (size_t i = 0; i < N; ++i) value[i] = text[i];
  }
};

// Whether an argument may have a __torch_function__, or hold what has one.
inline bool may_override(PyObject* o) {
  if (PyTuple_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      if (may_override(PyTuple_GET_ITEM(o, i))) return true;
    return false;
  }
  PyTypeObject* type = Py_TYPE(o);
  return !(is_plain_tensor(o) || type == &PyLong_Type || type == &PySlice_Type || type == &PyFloat_Type ||
           type == &PyBool_Type || type == &PyUnicode_Type || o == Py_None || o == Py_Ellipsis || type == dtype_type ||
           type == device_type);
}

template <Text Name, MethodBody Body>
PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  bool asks = !is_plain_tensor(self) || torch_function_mode_active();
  for (Py_ssize_t i = 0; !asks && i < nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0); ++i)
    asks = may_override(args[i]);
  if (STRATA_UNLIKELY(asks)) {
    static constexpr auto name = Name;
    static const Overloads overloads{name.value, nullptr, 0};
    PyObject* r = torch_function(overloads, self, args, nargs, kwnames);
    if (r || PyErr_Occurred()) return r;
  }
  return guarded([&] { return Body(self, args, nargs, kwnames); });
}

// A function of METH_FASTCALL | METH_KEYWORDS as PyMethodDef wants it.
template <MethodBody F>
PyCFunction fast() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(F));
}

// An int argument of a hand-written function; bools are refused.
int64_t int_argument(const char* function, const char* name, PyObject* o);
// The tensor itself, or its copy in the CPU's memory.
Tensor on_cpu(const Tensor& t);
// The tensor itself where nothing changes.
Tensor converted(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device, bool non_blocking = false,
                 bool copy = false, std::optional<MemoryFormat> format = std::nullopt);

// Bodies, one file per matter.
PyObject* tensor_to(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* tensor_type(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* tensor_cpu(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* convert_method(PyObject* self, DType dtype, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
template <DType T>
PyObject* to_type(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return convert_method(self, T, args, nargs, kwnames);
}
PyObject* tensor_numpy(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* tensor_array(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* tensor_dlpack_device(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

}  // namespace strata::py
