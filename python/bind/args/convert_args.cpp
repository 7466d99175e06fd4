// Conversions of single arguments and results between Python and C++.

#include "bind/args/factory.h"
#include "bind/args/parse.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"
#include "core/factory_device.h"
#include "core/promote.h"
#include "strata/generated/ops/copy.h"
#include "structmember.h"

namespace strata::py {

// ---- from Python
namespace {

bool absent(PyObject* o) { return !o || o == Py_None; }

[[noreturn]] void overflow() { raise(PyExc_ValueError, "Overflow when unpacking long long"); }

int64_t int_of_long(PyObject* o) {
  int beyond = 0;
  int64_t v = PyLong_AsLongLongAndOverflow(o, &beyond);
  if (STRATA_UNLIKELY(beyond != 0)) overflow();
  return v;
}

// An item of a list of tensors, which may have changed since the parser saw it.
const Tensor& to_item(PyObject* o) {
  if (!is_tensor(o))
    raise(PyExc_TypeError, str_cat("expected a list of Tensors, found ", Py_TYPE(o)->tp_name,
                                   " in it: the list changed during the call"));
  return tensor_of(o);
}

Scalar number_of(const Tensor& t) { return ops::item(t); }

// A number of NumPy: by its kind, through Python's own conversions.
Scalar scalar_of_numpy(PyObject* o) {
  if (is_numpy_kind(o, "bool_")) return Scalar(PyObject_IsTrue(o) == 1);
  if (is_numpy_kind(o, "integer")) {
    Own exact(checked(PyNumber_Index(o)));
    return to_Scalar(exact.get());
  }
  if (is_numpy_kind(o, "complexfloating")) {
    Py_complex v = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonError();
    return Scalar(std::complex<double>(v.real, v.imag));
  }
  double v = PyFloat_AsDouble(o);
  if (v == -1.0 && PyErr_Occurred()) throw PythonError();
  return Scalar(v);
}

}  // namespace

const Tensor& to_Tensor(PyObject* o) { return tensor_of(o); }
Tensor to_TensorOpt(PyObject* o) { return absent(o) ? Tensor() : tensor_of(o); }

std::vector<Tensor> to_TensorList(PyObject* o) {
  std::vector<Tensor> list;
  if (absent(o)) return list;
  Items items(o);
  list.reserve(items.size());
  for (Py_ssize_t i = 0; i < items.size(); ++i) list.push_back(to_item(items[i]));
  return list;
}

std::vector<Tensor> to_OptTensorList(PyObject* o) {
  std::vector<Tensor> list;
  if (absent(o)) return list;
  Items items(o);
  list.reserve(items.size());
  for (Py_ssize_t i = 0; i < items.size(); ++i) list.push_back(absent(items[i]) ? Tensor() : to_item(items[i]));
  return list;
}

int64_t to_Int(PyObject* o) {
  if (STRATA_LIKELY(PyLong_Check(o))) return int_of_long(o);
  if (is_tensor(o)) {
    Scalar s = number_of(tensor_of(o));
    STRATA_CHECK_TYPE(s.is_integral(true), "expected an int, got a tensor of ", tensor_of(o).dtype());
    return s.to_int();
  }
  Own exact(checked(PyNumber_Index(o)));
  return int_of_long(exact.get());
}
std::optional<int64_t> to_IntOpt(PyObject* o) { return absent(o) ? std::nullopt : std::optional<int64_t>(to_Int(o)); }

ItemError::ItemError(PyObject* o, Py_ssize_t position)
    : Error(ErrorKind::Type, str_cat("failed to unpack the object at pos ", position,
                                     " with error \"Overflow when unpacking long long\"")),
      list(o) {}

IntListValue to_IntList(PyObject* o) {
  IntListValue r;
  if (absent(o)) return r;
  Items items(o);
  r.v.reserve(items.size());
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    if (!PyLong_CheckExact(items[i])) {
      r.v.push_back(to_Int(items.own(i).get()));
      continue;
    }
    int beyond = 0;
    int64_t v = PyLong_AsLongLongAndOverflow(items[i], &beyond);
    if (STRATA_UNLIKELY(beyond != 0)) throw ItemError(o, i + 1);
    r.v.push_back(v);
  }
  return r;
}
IntListOptValue to_IntListOpt(PyObject* o) {
  IntListOptValue r;
  if (!absent(o)) r.v = to_IntList(o).v;
  return r;
}

FloatListValue to_FloatList(PyObject* o) {
  FloatListValue r;
  if (absent(o)) return r;
  Items items(o);
  r.v.reserve(items.size());
  for (Py_ssize_t i = 0; i < items.size(); ++i) r.v.push_back(to_Float(items.own(i).get()));
  return r;
}

double to_Float(PyObject* o) {
  if (STRATA_LIKELY(PyFloat_Check(o))) return PyFloat_AS_DOUBLE(o);
  if (is_tensor(o)) {
    Scalar s = number_of(tensor_of(o));
    STRATA_CHECK(!s.is_complex(), "value cannot be converted to type double without overflow");
    return s.to_double();
  }
  double v = PyFloat_AsDouble(o);
  if (v == -1.0 && PyErr_Occurred()) throw PythonError();
  return v;
}
std::optional<double> to_FloatOpt(PyObject* o) { return absent(o) ? std::nullopt : std::optional<double>(to_Float(o)); }

bool to_Bool(PyObject* o) {
  int v = PyObject_IsTrue(o);
  checked(v);
  return v != 0;
}
std::optional<bool> to_BoolOpt(PyObject* o) { return absent(o) ? std::nullopt : std::optional<bool>(to_Bool(o)); }

Scalar to_Scalar(PyObject* o) {
  if (STRATA_LIKELY(PyFloat_CheckExact(o))) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) {
    int beyond = 0;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &beyond);
    if (STRATA_LIKELY(beyond == 0)) return Scalar(static_cast<long>(v));
    if (beyond < 0) raise(PyExc_OverflowError, "int too small to convert to a 64-bit number");
    uint64_t u = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) throw PythonError();
    return Scalar::from_u64(u);
  }
  if (is_tensor(o)) return number_of(tensor_of(o));
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) {
    Py_complex v = PyComplex_AsCComplex(o);
    return Scalar(std::complex<double>(v.real, v.imag));
  }
  return scalar_of_numpy(o);
}
std::optional<Scalar> to_ScalarOpt(PyObject* o) {
  return absent(o) ? std::nullopt : std::optional<Scalar>(to_Scalar(o));
}

std::string_view to_Str(PyObject* o) {
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(o, &n);
  if (!text) throw PythonError();
  return {text, size_t(n)};
}
std::optional<std::string_view> to_StrOpt(PyObject* o) {
  return absent(o) ? std::nullopt : std::optional<std::string_view>(to_Str(o));
}

DType to_DType(PyObject* o) {
  if (Py_TYPE(o) == dtype_type) return reinterpret_cast<PyDType*>(o)->dtype;
  auto* t = reinterpret_cast<PyTypeObject*>(o);
  if (t == &PyFloat_Type) return DType::F64;
  if (t == &PyLong_Type) return DType::I64;
  if (t == &PyBool_Type) return DType::Bool;
  if (t == &PyComplex_Type) return DType::C128;
  raise(PyExc_TypeError, str_cat("dtype must be strata.dtype, not ", Py_TYPE(o)->tp_name));
}
std::optional<DType> to_DTypeOpt(PyObject* o) { return absent(o) ? std::nullopt : std::optional<DType>(to_DType(o)); }

Device to_Device(PyObject* o) {
  if (Py_TYPE(o) == device_type) return reinterpret_cast<PyDevice*>(o)->device;
  if (PyUnicode_Check(o)) return parse_device(to_Str(o));
  STRATA_CHECK(!PyLong_Check(o), "device: expected a name such as 'cpu' or a strata.device, got the number ", to_Int(o),
               "; a bare index needs a plugin that offers a device");
  raise(PyExc_TypeError, str_cat("device must be strata.device or str, not ", Py_TYPE(o)->tp_name));
}
std::optional<Device> to_DeviceOpt(PyObject* o) {
  return absent(o) ? std::nullopt : std::optional<Device>(to_Device(o));
}
std::optional<Device> to_FactoryDevice(PyObject* o) {
  if (!absent(o)) return to_Device(o);
  const Device d = factory_device();
  return d.is_cpu() || d.is_meta() ? std::nullopt : std::optional<Device>(d);
}

MemoryFormat to_Format(PyObject* o) {
  if (Py_TYPE(o) != memory_format_type)
    raise(PyExc_TypeError, str_cat("memory_format must be strata.memory_format, not ", Py_TYPE(o)->tp_name));
  return reinterpret_cast<PyFormat*>(o)->format;
}
std::optional<MemoryFormat> to_FormatOpt(PyObject* o) {
  return absent(o) ? std::nullopt : std::optional<MemoryFormat>(to_Format(o));
}

std::optional<MemoryFormat> format_argument(const char* function, PyObject* o) {
  if (!absent(o) && Py_TYPE(o) != memory_format_type)
    raise(PyExc_TypeError,
          str_cat(function, "(): argument 'memory_format' must be strata.memory_format, not ", Py_TYPE(o)->tp_name));
  return to_FormatOpt(o);
}

Generator to_Generator(PyObject* o) {
  if (absent(o)) return Generator();
  if (!PyObject_TypeCheck(o, generator_type))
    raise(PyExc_TypeError, str_cat("generator must be strata.Generator, not ", Py_TYPE(o)->tp_name));
  return reinterpret_cast<PyGenerator*>(o)->generator;
}

Tensor out_item(PyObject* tuple, int i, int count) {
  Items items(tuple);
  STRATA_CHECK_TYPE(items.size() == count, "out must be a tuple of ", count, " Tensors, got ", items.size());
  return to_item(items[i]);
}

void match_out(const Tensor& out, std::optional<DType>& dtype, const std::optional<Device>& device) {
  if (!out.defined()) return;
  STRATA_CHECK(!dtype || *dtype == out.dtype(), "dtype ", scalar_type_name(*dtype),
               " does not match dtype of out parameter (", scalar_type_name(out.dtype()), "); leave dtype out");
  STRATA_CHECK(!device || device->type == out.device().type, "device type ", *device,
               " does not match device type of out parameter (", out.device(), "); leave device out");
  dtype = out.dtype();
}

// ---- to Python
PyObject* wrap(const std::vector<Tensor>& list) {
  Own tuple(checked(PyTuple_New(Py_ssize_t(list.size()))));
  for (size_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, wrap(list[i]));
  return tuple.release();
}
PyObject* wrap(int64_t v) { return checked(PyLong_FromLongLong(v)); }
PyObject* wrap(double v) { return checked(PyFloat_FromDouble(v)); }
PyObject* wrap(bool v) { return Py_NewRef(v ? Py_True : Py_False); }
PyObject* wrap(const Scalar& v) {
  switch (v.kind()) {
    case Scalar::Kind::Bool:
      return wrap(v.to_bool());
    case Scalar::Kind::Int:
      return v.is_unsigned64() ? checked(PyLong_FromUnsignedLongLong(uint64_t(v.to_int()))) : wrap(v.to_int());
    case Scalar::Kind::Float:
      return wrap(v.to_double());
    default:
      return checked(PyComplex_FromDoubles(v.to_complex().real(), v.to_complex().imag()));
  }
}

// ---- named tuples
namespace {
struct StructField {
  std::string name;
  std::vector<std::string> words;
  std::vector<PyStructSequence_Field> fields;
  PyStructSequence_Desc desc;
};

PyObject* struct_repr(PyObject* o) {
  // strata.return_types.max(\nvalues=tensor(1.),\nindices=tensor(0))
  return guarded([&] {
    std::string text = std::string(Py_TYPE(o)->tp_name) + "(\n";
    Py_ssize_t n = PyTuple_GET_SIZE(o);
    const PyMemberDef* member = Py_TYPE(o)->tp_members;
    for (Py_ssize_t i = 0; i < n; ++i) {
      Own shown(checked(PyObject_Repr(PyTuple_GET_ITEM(o, i))));
      text += str_cat(member[i].name, "=", to_Str(shown.get()), i + 1 < n ? ",\n" : ")");
    }
    return checked(PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size())));
  });
}
}  // namespace

PyTypeObject* make_struct_type(const std::string& name, ArrayRef<const char*> fields) {
  // Pickle finds the type by its name: "strata.return_types" and the last word. There it may be already, since somebody
  // has asked for it.
  const size_t dot = name.rfind('.');
  const std::string last = name.substr(dot + 1);
  Own module(checked(PyImport_ImportModule(name.substr(0, dot).c_str())));
  PyObject* names = PyModule_GetDict(module.get());
  if (PyObject* found = PyDict_GetItemString(names, last.c_str()))
    return reinterpret_cast<PyTypeObject*>(Py_NewRef(found));
  auto* kept = new StructField{name, {fields.begin(), fields.end()}, {}, {}};  // the type refers to it for ever
  for (const std::string& f : kept->words) kept->fields.push_back({f.c_str(), nullptr});
  kept->fields.push_back({nullptr, nullptr});
  kept->desc = {kept->name.c_str(), nullptr, kept->fields.data(), int(fields.size())};
  PyTypeObject* type = PyStructSequence_NewType(&kept->desc);
  if (!type) throw PythonError();
  type->tp_repr = struct_repr;
  if (PyDict_SetItemString(names, last.c_str(), reinterpret_cast<PyObject*>(type)) < 0) throw PythonError();
  return type;
}

PyObject* finish_struct(PyTypeObject* type, PyObject* tuple) {
  Own items(tuple);
  Own result(checked(PyStructSequence_New(type)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    PyStructSequence_SET_ITEM(result.get(), i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return result.release();
}

}  // namespace strata::py
