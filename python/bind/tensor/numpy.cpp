// NumPy arrays over tensors' memory and tensors over arrays' memory, without NumPy's headers: through the buffer
// protocol.
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "bind/args/convert.h"
#include "bind/args/parse.h"
#include "bind/tensor/methods.h"
#include "dispatch/seen.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops/view.h"

namespace strata::py {

namespace {

PyObject* numpy() {
  static PyObject* module = nullptr;
  if (!module) module = checked(PyImport_ImportModule("numpy"));
  return module;
}

// struct-module codes of native types.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (*format == '@' || *format == '=' || *format == '|') ++format;
  if constexpr (std::endian::native == std::endian::little)
    if (*format == '<') ++format;
  std::string_view code(format);
  if (code == "?") return DType::Bool;
  if (code == "e") return DType::F16;
  if (code == "f") return DType::F32;
  if (code == "d") return DType::F64;
  if (code == "Zf") return DType::C64;
  if (code == "Zd") return DType::C128;
  if (code.size() != 1) return std::nullopt;
  bool is_signed = std::strchr("bhilq", code[0]) != nullptr;
  if (!is_signed && !std::strchr("BHILQ", code[0])) return std::nullopt;
  switch (itemsize) {
    case 1:
      return is_signed ? DType::I8 : DType::U8;
    case 2:
      return is_signed ? DType::I16 : DType::U16;
    case 4:
      return is_signed ? DType::I32 : DType::U32;
    default:
      return is_signed ? DType::I64 : DType::U64;
  }
}

[[noreturn]] void refuse_type(PyObject* array) {
  PyErr_Clear();
  Own dtype(checked(PyObject_GetAttrString(array, "dtype")));
  Own native(checked(PyObject_GetAttrString(dtype.get(), "isnative")));
  if (native.get() == Py_False)
    raise(PyExc_ValueError,
          "given numpy array has byte order different from the native byte order. Conversion between byte "
          "orders is currently not supported.");
  Own type(checked(PyObject_GetAttrString(dtype.get(), "type")));
  raise(
      PyExc_TypeError,
      str_cat("can't convert np.ndarray of type ", reinterpret_cast<PyTypeObject*>(type.get())->tp_name,
              ". The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, "
              "int8, uint64, uint32, uint16, uint8, and bool."));
}

struct HeldBuffer {
  Py_buffer view;
  ~HeldBuffer() { PyBuffer_Release(&view); }
};

}  // namespace

bool is_array(PyObject* o) { return is_numpy_kind(o, "ndarray"); }

Tensor tensor_over_array(PyObject* array, bool warn_readonly) {
  HeldBuffer held{};
  if (PyObject_GetBuffer(array, &held.view, PyBUF_RECORDS_RO) < 0) refuse_type(array);
  const Py_buffer& view = held.view;
  std::optional<DType> dtype = dtype_of_format(view.format ? view.format : "B", view.itemsize);
  if (!dtype) refuse_type(array);
  DimVec sizes, strides;
  for (int i = 0; i < view.ndim; ++i) {
    sizes.push_back(view.shape[i]);
    if (view.strides[i] < 0)
      raise(PyExc_ValueError,
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently "
            "supported. (You can probably work around this by making a copy of your array  with array.copy().) ");
    if (view.strides[i] % view.itemsize)
      raise(PyExc_ValueError,
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
            "reallocate the memory.");
    strides.push_back(view.strides[i] / view.itemsize);
  }
  if (view.readonly && warn_readonly)
    warn(
        "The given NumPy array is not writable, and tensors are: writing to this one is undefined. Copy the array to "
        "be "
        "safe, or make it writable first.");
  int64_t bytes = checked_bytes(strided_span(sizes, strides), view.itemsize, "from_numpy");
  return make_tensor_over(storage_over(view.buf, size_t(bytes), array), sizes, strides, 0, *dtype);
}

// tensor.numpy(*, force=False)
PyObject* tensor_numpy(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[1] = {};
  read_args("numpy", {"force"}, 0, v, args, n, kw);
  Tensor t = tensor_of(self);
  check_reading("numpy");
  const bool force = v[0] && to_Bool(v[0]);
  if (force) {
    t = on_cpu(ops::detach(t));
  } else {
    STRATA_CHECK(!(t.requires_grad() && grad_enabled()),
                 "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    STRATA_CHECK_TYPE(t.device().is_cpu(), "can't convert ", t.device(),
                      " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  }
  STRATA_CHECK_TYPE(t.dtype() != DType::BF16, "Got unsupported ScalarType BFloat16");
  STRATA_CHECK_NOT_IMPLEMENTED(!t.is_meta(), "numpy: the tensor has a shape only and no values (meta execution)");
  Own shape(make_ints(t.sizes()));
  Own dtype(checked(PyUnicode_FromString(traits(t.dtype()).name)));
  if (t.numel() == 0) {
    Own empty(checked(PyObject_GetAttrString(numpy(), "empty")));
    return checked(PyObject_CallFunctionObjArgs(empty.get(), shape.get(), dtype.get(), nullptr));
  }
  DimVec steps(t.strides());
  for (int64_t& s : steps) s *= t.itemsize();
  Own strides(make_ints(steps));
  t.bytes();  // raises where there is no memory
  t.storage()->pin();
  Own memory(wrap_storage(t.storage()));
  Own offset(wrap(t.storage_offset() * t.itemsize()));
  Own type(checked(PyObject_GetAttrString(numpy(), "ndarray")));
  return checked(PyObject_CallFunctionObjArgs(type.get(), shape.get(), dtype.get(), memory.get(), offset.get(),
                                              strides.get(), nullptr));
}

// tensor.__array__(dtype=None, copy=None)
PyObject* tensor_array(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[2] = {};
  read_args("__array__", {"dtype", "copy"}, 2, v, args, n, kw);
  Own array(tensor_numpy(self, nullptr, 0, nullptr));
  const bool copy = v[1] == Py_True;
  if (v[0] && v[0] != Py_None) {
    Own astype(checked(PyObject_GetAttrString(array.get(), "astype")));
    Own call_args(checked(PyTuple_Pack(1, v[0])));
    Own call_kwargs(checked(Py_BuildValue("{s:O}", "copy", copy ? Py_True : Py_False)));
    return checked(PyObject_Call(astype.get(), call_args.get(), call_kwargs.get()));
  }
  return copy ? checked(PyObject_CallMethod(array.get(), "copy", nullptr)) : array.release();
}

void init_numpy(PyObject*) {}

}  // namespace strata::py
