// tensor(), as_tensor(), asarray(), the legacy constructor Tensor(...), and tensors over foreign buffers.
#include "bind/args/convert.h"

#include "bind/args/factory.h"
#include "bind/args/parse.h"
#include "bind/tensor/methods.h"
#include "core/factory_device.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/view.h"

namespace strata::py {

namespace {

bool given(PyObject* o) { return o && o != Py_None; }

std::optional<DType> dtype_argument(const char* function, PyObject* o) {
  if (!given(o)) return std::nullopt;
  auto* t = reinterpret_cast<PyTypeObject*>(o);
  if (Py_TYPE(o) != dtype_type && t != &PyFloat_Type && t != &PyLong_Type && t != &PyBool_Type && t != &PyComplex_Type)
    raise(PyExc_TypeError, str_cat(function, "(): argument 'dtype' must be strata.dtype, not ", Py_TYPE(o)->tp_name));
  return to_DType(o);
}

bool bool_argument(const char* function, const char* name, PyObject* o) {
  if (!given(o)) return false;
  if (!PyBool_Check(o))
    raise(PyExc_TypeError, str_cat(function, "(): argument '", name, "' must be bool, not ", Py_TYPE(o)->tp_name));
  return o == Py_True;
}

// The argument's, or where this thread's tensors are made.
std::optional<Device> wanted_device(PyObject* o) {
  const std::optional<Device> device = to_FactoryDevice(o);
  return !device && factory_device().is_meta() ? factory_device() : device;
}

}  // namespace

Tensor pinned(const Tensor& t) {
  const Own object(checked(wrap(t)));
  const Own made(checked(PyObject_CallMethod(object.get(), "pin_memory", nullptr)));
  return tensor_of(made.get());
}

namespace {

PyObject* finished(Tensor&& t, const char* function, PyObject* requires_grad, PyObject* pin_memory = nullptr) {
  if (bool_argument(function, "pin_memory", pin_memory)) t = pinned(t);
  if (bool_argument(function, "requires_grad", requires_grad)) set_requires_grad(t, true);
  return wrap(std::move(t));
}

PyObject* tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[5] = {};
  read_args("tensor", {"data", "dtype", "device", "requires_grad", "pin_memory"}, 1, v, args, n, kw, 1);
  if (is_tensor(v[0]))
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        "sourceTensor.detach().clone().requires_grad_(True), rather than strata.tensor(sourceTensor).");
  const std::optional<Device> device = wanted_device(v[2]);
  return finished(tensor_from_data(v[0], dtype_argument("tensor", v[1]), device), "tensor", v[3], v[4]);
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[3] = {};
  read_args("as_tensor", {"data", "dtype", "device"}, 3, v, args, n, kw, 1);
  std::optional<DType> dtype = dtype_argument("as_tensor", v[1]);
  const std::optional<Device> device = wanted_device(v[2]);
  if (is_tensor(v[0])) {
    Tensor t = converted(tensor_of(v[0]), dtype, device);
    return t.is_same(tensor_of(v[0])) ? Py_NewRef(v[0]) : wrap(std::move(t));
  }
  if (is_array(v[0])) return wrap(converted(tensor_over_array(v[0]), dtype, device));
  return wrap(tensor_from_data(v[0], dtype, device));
}

bool has_buffer(PyObject* o) { return PyObject_CheckBuffer(o) && !PyUnicode_Check(o) && !PyList_Check(o); }

Tensor over_buffer(const char* function, PyObject* buffer, DType dtype, int64_t count, int64_t offset) {
  Py_buffer view;
  bool writable = PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE) == 0;
  if (!writable) {
    PyErr_Clear();
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
      raise(PyExc_ValueError,
            str_cat(function, "(): could not retrieve buffer from object of type ", Py_TYPE(buffer)->tp_name));
    PyBuffer_Release(&view);
    warn(
        "The given buffer is not writable, and tensors are: writing to this one is undefined. Copy the buffer (for "
        "example bytearray(data)) to be safe.");
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0) throw PythonError();
  }
  const int64_t length = view.len, item = itemsize(dtype);
  void* data = view.buf;
  // The object is kept alive; like NumPy, nothing holds it against being resized.
  PyBuffer_Release(&view);
  auto refuse = [&](const std::string& text) { raise(PyExc_ValueError, text); };
  if (!(length > 0 && count != 0))
    refuse(str_cat("both buffer length (", length, ") and count (", count, ") must not be 0"));
  if (!(offset >= 0 && offset < length))
    refuse(str_cat("offset (", offset, " bytes) must be non-negative and no greater than buffer length (", length,
                   " bytes) minus 1"));
  if (count <= 0) {
    if ((length - offset) % item)
      refuse(str_cat("buffer length (", length, " bytes) after offset (", offset,
                     " bytes) must be a multiple of element size (", item, ")"));
    count = (length - offset) / item;
  }
  if (count > (length - offset) / item)
    refuse(str_cat("requested buffer length (", count, " * ", item, " bytes) after offset (", offset,
                   " bytes) must not be greater than actual buffer length (", length, " bytes)"));
  Ref<Storage> storage = storage_over(static_cast<char*>(data) + offset, size_t(count * item), buffer);
  return make_tensor_over(std::move(storage), IntArrayRef(count), IntArrayRef(int64_t(1)), 0, dtype);
}

PyObject* frombuffer(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[5] = {};
  read_args("frombuffer", {"buffer", "dtype", "count", "offset", "requires_grad"}, 1, v, args, n, kw, 2);
  if (!has_buffer(v[0])) raise(PyExc_ValueError, "object does not implement Python buffer protocol.");
  std::optional<DType> dtype = dtype_argument("frombuffer", v[1]);
  if (!dtype) raise(PyExc_TypeError, "frombuffer(): argument 'dtype' must be strata.dtype, not NoneType");
  int64_t count = v[2] ? int_argument("frombuffer", "count", v[2]) : -1;
  int64_t offset = v[3] ? int_argument("frombuffer", "offset", v[3]) : 0;
  return finished(over_buffer("frombuffer", v[0], *dtype, count, offset), "frombuffer", v[4]);
}

PyObject* asarray(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[5] = {};
  read_args("asarray", {"obj", "dtype", "device", "copy", "requires_grad"}, 1, v, args, n, kw, 1);
  std::optional<DType> dtype = dtype_argument("asarray", v[1]);
  const std::optional<Device> device = wanted_device(v[2]);
  const bool must_copy = v[3] == Py_True, must_share = v[3] == Py_False;
  Tensor source;
  bool shared = true;
  if (is_tensor(v[0])) {
    source = tensor_of(v[0]);
  } else if (is_array(v[0])) {
    source = tensor_over_array(v[0]);
  } else if (is_numpy_kind(v[0], "generic")) {  // it has a buffer, too
    source = tensor_from_data(v[0], dtype, device);
  } else if (PyObject_HasAttrString(v[0], "__dlpack__")) {
    source = tensor_from_dlpack(v[0]);
  } else if (PyObject_TypeCheck(v[0], storage_type) && PyObject_Size(v[0]) == 0) {
    source = ops::empty(IntArrayRef(int64_t(0)), dtype.value_or(default_dtype()));
  } else if (has_buffer(v[0])) {
    source = over_buffer("asarray", v[0], dtype.value_or(default_dtype()), -1, 0);
  } else {
    if (must_share) raise(PyExc_ValueError, "can't alias arbitrary sequence into a tensor.");
    source = tensor_from_data(v[0], dtype, device);
    shared = false;
  }
  Tensor t = converted(source, dtype, device, false, must_copy && shared);
  if (must_share && !t.is_same(source))
    raise(PyExc_ValueError, str_cat("can't alias tensor with dtype ", source.dtype(), " and device ", source.device(),
                                    " into ", t.dtype(), " and ", t.device(), "; allow a copy with copy=None"));
  bool wanted = bool_argument("asarray", "requires_grad", v[4]);
  if (v[4] == Py_False && t.requires_grad()) t = ops::detach(t);
  if (is_tensor(v[0]) && t.is_same(tensor_of(v[0])) && !wanted) return Py_NewRef(v[0]);
  if (wanted && t.is_leaf()) set_requires_grad(t, true);
  return wrap(std::move(t));
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!is_array(array)) raise(PyExc_TypeError, str_cat("expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")"));
    return wrap(tensor_over_array(array));
  });
}

template <MethodBody F>
PyObject* function(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] { return F(self, args, n, kw); });
}

PyMethodDef functions[] = {
    {"tensor", fast<function<tensor>>(), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False)\n\nA new tensor with the values of numbers, nested "
     "sequences or an array. Raises ValueError for ragged sequences."},
    {"as_tensor", fast<function<as_tensor>>(), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n\nThe data as a tensor, without a copy where that is possible."},
    {"asarray", fast<function<asarray>>(), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n\nThe object as a tensor; copy=False "
     "raises ValueError where a copy would be needed."},
    {"frombuffer", fast<function<frombuffer>>(), METH_FASTCALL | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n\nA 1-d tensor over the memory of an "
     "object "
     "with Python's buffer protocol."},
    {"from_numpy", from_numpy, METH_O, "from_numpy(ndarray)\n\nA tensor over the memory of the array."},
    {nullptr, nullptr, 0, nullptr},
};

// Tensor(), Tensor(2, 3), Tensor(size), Tensor([1., 2.]), Tensor(other).
Tensor legacy(PyObject* args) {
  Items items(args);
  DType dtype = default_dtype();
  if (items.size() == 0) return make_tensor(IntArrayRef(int64_t(0)), dtype);
  PyObject* first = items[0];
  if (is_int_like(first) && !is_tensor(first)) {
    DimVec sizes;
    for (Py_ssize_t i = 0; i < items.size(); ++i) sizes.push_back(int_argument("new", "size", items[i]));
    return make_tensor(sizes, dtype);
  }
  if (items.size() > 1)
    raise(PyExc_TypeError, str_cat("new() takes sizes as ints, or one tensor or sequence of data; got ", items.size(),
                                   " arguments of which the first is ", Py_TYPE(first)->tp_name));
  if (Py_TYPE(first) == size_type) return make_tensor(to_IntList(first), dtype);
  if (is_tensor(first)) {
    refuse_sparse(first, "Tensor()");
    return ops::alias(tensor_of(first));
  }
  if (PyFloat_Check(first) || PyBool_Check(first) || PyComplex_Check(first) || first == Py_None)
    raise(PyExc_TypeError, str_cat("new(): data must be a sequence (got ", Py_TYPE(first)->tp_name, ")"));
  return tensor_from_data(first, dtype, std::nullopt);
}

}  // namespace

PyObject* new_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (type == tensor_base_type && tensor_class != reinterpret_cast<PyObject*>(tensor_base_type))
      raise(PyExc_TypeError, "TensorBase is the base of strata.Tensor and cannot be made by itself");
    std::optional<Device> device;
    if (kwargs)
      if (PyObject* d = PyDict_GetItemString(kwargs, "device")) device = to_DeviceOpt(d);
    return wrap_as(converted(legacy(args), std::nullopt, device), type);
  });
}

Ref<Storage> storage_over(void* data, size_t bytes, PyObject* owner) {
  auto release = [](void* o) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(static_cast<PyObject*>(o));
    PyGILState_Release(state);
  };
  return Storage::borrow(data, bytes, Device{}, release, Py_NewRef(owner));
}

void init_convert(PyObject* module) {
  add_functions(module, functions);
  init_numpy(module);
  init_dlpack(module);
}

}  // namespace strata::py
