// Which Python objects fit which kind of argument.
#include <cstring>

#include "bind/args/parse.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

namespace {

bool is_single_number(const Tensor& t) { return t.dim() == 0 && !t.requires_grad(); }
bool is_sequence(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o) || is_int_pack(o); }

bool has_index(PyObject* o) {
  PyNumberMethods* m = Py_TYPE(o)->tp_as_number;
  return m && m->nb_index;
}

bool is_float_like(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  if (is_tensor(o)) return is_single_number(tensor_of(o));
  return is_numpy_kind(o, "floating") || is_numpy_kind(o, "integer") || is_numpy_kind(o, "bool_");
}

template <class F>
bool each(PyObject* o, Py_ssize_t* element, F&& fits) {
  if (!is_sequence(o)) return false;
  Items items(o);
  for (Py_ssize_t i = 0; i < items.size(); ++i)
    if (!fits(items[i])) {
      *element = i;
      return false;
    }
  return true;
}

}  // namespace

// NumPy's types are looked up by name once NumPy has been imported by somebody.
bool is_numpy_kind(PyObject* o, const char* kind) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type || o == Py_None ||
      PyList_Check(o) || PyTuple_Check(o) || is_tensor(o))
    return false;
  static PyObject* numpy = nullptr;
  if (!numpy) {
    PyObject* modules = PyImport_GetModuleDict();
    PyObject* found = modules ? PyDict_GetItemString(modules, "numpy") : nullptr;
    if (!found || !PyObject_HasAttrString(found, "generic")) return false;
    Py_INCREF(found);
    numpy = found;
  }
  PyObject* type = PyObject_GetAttrString(numpy, kind);
  if (!type) {
    PyErr_Clear();
    return false;
  }
  // By the type itself: what an object says of its class (__class__) would run Python code.
  bool is = PyType_Check(type) && PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(type));
  Py_DECREF(type);
  return is;
}

bool is_int_like(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (PyBool_Check(o) || PyFloat_Check(o)) return false;
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    return t.defined() && t.numel() == 1 && is_integral(t.dtype(), true);
  }
  if (!has_index(o) || is_numpy_kind(o, "bool_")) return false;
  if (!is_numpy_kind(o, "ndarray")) return true;
  Own number(PyNumber_Index(o));  // an array of no dims, of an integer
  if (!number.get()) PyErr_Clear();
  return number.get() != nullptr;
}

bool is_number(PyObject* o) { return PyComplex_Check(o) || is_float_like(o) || is_numpy_kind(o, "number"); }

bool accepts(const ArgSpec& spec, PyObject* o, Py_ssize_t* element) {
  switch (spec.kind) {
    case ArgKind::Tensor:
    case ArgKind::TensorOpt:
      return is_tensor(o);
    case ArgKind::TensorList:
    case ArgKind::OutTuple:
      return !is_int_pack(o) && each(o, element, is_tensor);
    case ArgKind::OptTensorList:
      return !is_int_pack(o) && each(o, element, [](PyObject* x) { return x == Py_None || is_tensor(x); });
    case ArgKind::Int:
    case ArgKind::IntOpt:
      return is_int_like(o);
    case ArgKind::IntList:
    case ArgKind::IntListOpt: {
      bool first = true;
      return each(o, element, [&](PyObject* x) {
        bool fits = is_int_like(x) || (!first && PyBool_Check(x));
        first = false;
        return fits;
      });
    }
    case ArgKind::Float:
    case ArgKind::FloatOpt:
      return is_float_like(o);
    case ArgKind::FloatList:
      return each(o, element, is_float_like);
    case ArgKind::Bool:
    case ArgKind::BoolOpt:
      return PyBool_Check(o);
    case ArgKind::Scalar:
    case ArgKind::ScalarOpt:
      return is_number(o);
    case ArgKind::Str:
    case ArgKind::StrOpt:
      return PyUnicode_Check(o);
    case ArgKind::DType:
    case ArgKind::DTypeOpt: {
      auto* t = reinterpret_cast<PyTypeObject*>(o);
      return Py_TYPE(o) == dtype_type || t == &PyFloat_Type || t == &PyLong_Type || t == &PyBool_Type ||
             t == &PyComplex_Type;
    }
    case ArgKind::Device:
    case ArgKind::DeviceOpt:
      return Py_TYPE(o) == device_type || PyUnicode_Check(o) || PyLong_CheckExact(o);
    case ArgKind::Format:
    case ArgKind::FormatOpt:
      return Py_TYPE(o) == memory_format_type;
    case ArgKind::Generator:
      return PyObject_TypeCheck(o, generator_type);
    case ArgKind::Ignored:
      if (PyBool_Check(o)) return true;
      [[fallthrough]];
    case ArgKind::Layout:  // there is one
      return Py_TYPE(o) == layout_type || o == Py_None;
  }
  return false;
}

}  // namespace strata::py
