// tensor.to(...) in all its forms, and the methods that name a type.
#include <cstring>

#include "bind/tensor/methods.h"
#include "core/promote.h"
#include "core/stream.h"
#include "run/formulas.h"
#include "strata/generated/ops/copy.h"

namespace strata::py {

namespace {

bool is_dtype(PyObject* o) {
  auto* t = reinterpret_cast<PyTypeObject*>(o);
  return Py_TYPE(o) == dtype_type || t == &PyFloat_Type || t == &PyLong_Type || t == &PyBool_Type ||
         t == &PyComplex_Type;
}
bool is_device(PyObject* o) { return Py_TYPE(o) == device_type || PyUnicode_Check(o); }
bool given(PyObject* o) { return o && o != Py_None; }

bool flag(const char* function, const char* name, PyObject* o) {
  if (!o) return false;
  if (!PyBool_Check(o))
    raise(PyExc_TypeError, str_cat(function, "(): argument '", name, "' must be bool, not ", Py_TYPE(o)->tp_name));
  return o == Py_True;
}

// "torch.FloatTensor", "strata.LongTensor", "FloatTensor"; the name of a device may stand before the last word.
std::optional<DType> legacy_dtype(std::string_view name, std::optional<Device>* device) {
  const size_t dot = name.rfind('.'), before = dot == std::string_view::npos ? dot : name.rfind('.', dot - 1);
  *device = Device{};
  if (before != std::string_view::npos) *device = parse_device(name.substr(before + 1, dot - before - 1));
  if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == std::string(scalar_type_name(DType(i))) + "Tensor") return DType(i);
  return std::nullopt;
}

// The object of `t`; self where it is the same tensor.
PyObject* result(PyObject* self, Tensor&& t) {
  return t.is_same(tensor_of(self)) ? Py_NewRef(self) : wrap(std::move(t));
}

}  // namespace

Tensor converted(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device, bool non_blocking,
                 bool copy, std::optional<MemoryFormat> format) {
  bool same_type = !dtype || *dtype == t.dtype();
  bool same_device = !device || is_at(t.device(), *device);
  bool same_format = formulas::keeps_format(t, format);
  if (same_type && same_device && same_format && !copy) return t;
  if (same_type && same_device) return ops::clone(t, format);
  return ops::_to_copy(t, same_type ? std::nullopt : dtype, same_device ? std::nullopt : device, non_blocking, format);
}

PyObject* tensor_to(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  const Tensor& t = tensor_of(self);
  if (STRATA_LIKELY(nargs == 1 && !kwnames && Py_TYPE(args[0]) == dtype_type))
    return result(self, converted(t, reinterpret_cast<PyDType*>(args[0])->dtype, std::nullopt));
  enum { DeviceArg, TypeArg, NonBlocking, Copy, Format, Other };
  PyObject* v[6] = {};
  // The first positional arguments tell the form; the rest follow in the order of torch.
  if (nargs && is_tensor(args[0])) {
    PyObject* o[4] = {};
    read_args("to", {"other", "non_blocking", "copy", "memory_format"}, 3, o, args, nargs, kwnames);
    v[Other] = o[0], v[NonBlocking] = o[1], v[Copy] = o[2], v[Format] = o[3];
  } else if (nargs && is_dtype(args[0]) && !PyUnicode_Check(args[0])) {
    PyObject* o[4] = {};
    read_args("to", {"dtype", "non_blocking", "copy", "memory_format"}, 3, o, args, nargs, kwnames);
    v[TypeArg] = o[0], v[NonBlocking] = o[1], v[Copy] = o[2], v[Format] = o[3];
  } else {
    PyObject* o[6] = {};
    read_args("to", {"device", "dtype", "non_blocking", "copy", "memory_format", "other"}, 4, o, args, nargs, kwnames);
    std::memcpy(v, o, sizeof v);
  }
  auto wrong = [&](const char* name, const char* wanted, PyObject* o) {
    raise(PyExc_TypeError, str_cat("to(): argument '", name, "' must be ", wanted, ", not ", Py_TYPE(o)->tp_name));
  };
  std::optional<DType> dtype;
  std::optional<Device> device;
  if (given(v[Other])) {
    if (!is_tensor(v[Other])) wrong("other", "Tensor", v[Other]);
    dtype = tensor_of(v[Other]).dtype();
    device = tensor_of(v[Other]).device();
  }
  if (given(v[DeviceArg])) {
    if (!is_device(v[DeviceArg]) && !PyLong_CheckExact(v[DeviceArg]))
      wrong("device", "strata.device, strata.dtype, Tensor or str", v[DeviceArg]);
    device = to_Device(v[DeviceArg]);
  }
  if (given(v[TypeArg])) {
    if (!is_dtype(v[TypeArg])) wrong("dtype", "strata.dtype", v[TypeArg]);
    dtype = to_DType(v[TypeArg]);
  }
  return result(self, converted(t, dtype, device, flag("to", "non_blocking", v[NonBlocking]),
                                flag("to", "copy", v[Copy]), format_argument("to", v[Format])));
}

PyObject* convert_method(PyObject* self, DType dtype, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* v[1] = {};
  read_args(traits(dtype).name, {"memory_format"}, 0, v, args, nargs, kwnames);
  return result(
      self, converted(tensor_of(self), dtype, std::nullopt, false, false, format_argument(traits(dtype).name, v[0])));
}

PyObject* tensor_cpu(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* v[1] = {};
  read_args("cpu", {"memory_format"}, 0, v, args, nargs, kwnames);
  return result(self, converted(tensor_of(self), std::nullopt, Device{}, false, false, format_argument("cpu", v[0])));
}

PyObject* tensor_type(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* v[2] = {};
  read_args("type", {"dtype", "non_blocking"}, 2, v, args, nargs, kwnames);
  const Tensor& t = tensor_of(self);
  if (!given(v[0])) {
    std::string device = t.device().is_cpu() ? "" : device_type_name(t.device().type) + ".";
    std::string name = str_cat("strata.", device, scalar_type_name(t.dtype()), "Tensor");
    return checked(shown(name));
  }
  DType dtype;
  std::optional<Device> device;
  if (PyUnicode_Check(v[0])) {
    std::optional<DType> named = legacy_dtype(to_Str(v[0]), &device);
    if (!named)
      raise(PyExc_ValueError,
            str_cat("invalid type: '", to_Str(v[0]), "'; expected a name such as 'strata.FloatTensor'"));
    dtype = *named;
  } else {
    dtype = to_DType(v[0]);
  }
  return result(self, converted(t, dtype, device, flag("type", "non_blocking", v[1])));
}

}  // namespace strata::py
