// Methods of tensors that are not operators: geometry, conversion to Python values, flags.
#include <algorithm>
#include <complex>
#include <cstring>

#include "bind/tensor/methods.h"
#include "core/promote.h"
#include "device/unit.h"
#include "dispatch/seen.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops/copy.h"

namespace strata::py {

namespace {

// ---- geometry
PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  const Tensor& t = tensor_of(self);
  if (STRATA_LIKELY(n == 0 && !kw)) return make_size(t.sizes());
  PyObject* v[1] = {};
  read_args("size", {"dim"}, 1, v, args, n, kw);
  return !v[0] || v[0] == Py_None ? make_size(t.sizes()) : wrap(t.size(int_argument("size", "dim", v[0])));
}

PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  const Tensor& t = tensor_of(self);
  PyObject* v[1] = {};
  read_args("stride", {"dim"}, 1, v, args, n, kw);
  return !v[0] || v[0] == Py_None ? make_ints(t.strides()) : wrap(t.stride(int_argument("stride", "dim", v[0])));
}

PyObject* is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[1] = {};
  read_args("is_contiguous", {"memory_format"}, 1, v, args, n, kw);
  return wrap(tensor_of(self).is_contiguous(format_argument("is_contiguous", v[0]).value_or(MemoryFormat::Contiguous)));
}

template <auto F>
PyObject* plain(PyObject* self, PyObject*) {
  return guarded([&] { return F(tensor_of(self)); });
}
PyObject* dim(const Tensor& t) { return wrap(t.dim()); }
PyObject* numel(const Tensor& t) { return wrap(t.numel()); }
PyObject* element_size(const Tensor& t) { return wrap(t.itemsize()); }
PyObject* storage_offset(const Tensor& t) { return wrap(t.storage_offset()); }
PyObject* data_ptr(const Tensor& t) {
  check_reading("data_ptr");
  STRATA_CHECK(!t.is_meta(), "data_ptr: the tensor has a shape only and no memory (meta execution)");
  return checked(PyLong_FromVoidPtr(t.numel() ? t.data_ptr() : nullptr));
}
PyObject* is_floating_point(const Tensor& t) { return wrap(t.is_floating_point()); }
PyObject* is_complex(const Tensor& t) { return wrap(t.is_complex()); }
PyObject* is_signed(const Tensor& t) {
  DKind k = traits(t.dtype()).kind;
  return wrap(k != DKind::Bool && k != DKind::Unsigned);
}
PyObject* is_inference(const Tensor& t) { return wrap(bool(t.impl()->inference_)); }
PyObject* is_view(const Tensor& t) { return wrap(t.is_view()); }
PyObject* is_function_view(const Tensor& t) { return wrap(bool(t.impl()->function_view_)); }
PyObject* is_pinned(const Tensor& t) {
  return wrap(t.device().is_cpu() && t.storage() && device::is_pinned(t.storage()->data()));
}
PyObject* device_index(const Tensor& t) {
  return wrap(int64_t(t.device().is_cpu() || t.is_meta() ? -1 : std::max<int>(0, t.device().index)));
}
PyObject* untyped_storage(const Tensor& t) { return wrap_storage(t.storage()); }

// ---- values
PyObject* element(const char* p, DType t) {
  auto as = [p]<class T>(T) {
    T v;
    std::memcpy(&v, p, sizeof(T));
    return v;
  };
  switch (t) {
    case DType::Bool:
      return Py_NewRef(*p ? Py_True : Py_False);
    case DType::U8:
      return PyLong_FromLong(as(uint8_t()));
    case DType::I8:
      return PyLong_FromLong(as(int8_t()));
    case DType::U16:
      return PyLong_FromLong(as(uint16_t()));
    case DType::I16:
      return PyLong_FromLong(as(int16_t()));
    case DType::U32:
      return PyLong_FromLong(as(uint32_t()));
    case DType::I32:
      return PyLong_FromLong(as(int32_t()));
    case DType::U64:
      return PyLong_FromUnsignedLongLong(as(uint64_t()));
    case DType::I64:
      return PyLong_FromLongLong(as(int64_t()));
    case DType::F16:
      return PyFloat_FromDouble(to_float(as(Half())));
    case DType::BF16:
      return PyFloat_FromDouble(to_float(as(BFloat16())));
    case DType::F32:
      return PyFloat_FromDouble(as(float()));
    case DType::F64:
      return PyFloat_FromDouble(as(double()));
    case DType::C64: {
      auto v = as(std::complex<float>());
      return PyComplex_FromDoubles(v.real(), v.imag());
    }
    default: {
      auto v = as(std::complex<double>());
      return PyComplex_FromDoubles(v.real(), v.imag());
    }
  }
}

PyObject* nested(const Tensor& t, const char* p, int64_t d) {
  if (d == t.dim()) return checked(element(p, t.dtype()));
  int64_t n = t.sizes()[d], step = p ? t.strides()[d] * t.itemsize() : 0;
  Own list(checked(PyList_New(n)));
  for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, nested(t, p + i * step, d + 1));
  return list.release();
}

PyObject* tolist(const Tensor& t) {
  check_reading("tolist");
  STRATA_CHECK_NOT_IMPLEMENTED(!t.is_meta(), "tolist: the tensor has a shape only and no values (meta execution)");
  Tensor here = on_cpu(t);
  return nested(here, here.numel() ? here.bytes() : nullptr, 0);
}

PyObject* item(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  read_args("item", {}, 0, nullptr, args, n, kw);
  const Tensor& t = tensor_of(self);
  STRATA_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return wrap(ops::item(t));
}

PyObject* to_complex_number(const Tensor& t) {
  if (t.numel() != 1) raise(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  std::complex<double> v = ops::item(t).to_complex();
  return checked(PyComplex_FromDoubles(v.real(), v.imag()));
}

// ---- autograd
PyObject* set_requires(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[1] = {};
  read_args("requires_grad_", {"requires_grad"}, 1, v, args, n, kw);
  if (v[0] && !PyBool_Check(v[0]))
    raise(PyExc_TypeError, str_cat("requires_grad_(): argument 'requires_grad' ", n ? "(position 1) " : "",
                                   "must be bool, not ", Py_TYPE(v[0])->tp_name));
  bool value = !v[0] || v[0] == Py_True;
  set_requires_grad(tensor_of(self), value);
  return Py_NewRef(self);
}

// Makes the tensor a leaf that needs no gradient, whatever made it.
PyObject* detach_inplace(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    STRATA_CHECK(!t.is_view(),
                 "Can't detach views in-place: detach_() would cut off the base too. Use detach() instead");
    t.impl()->grad_fn_ = nullptr;
    t.impl()->output_nr_ = 0;
    set_requires_grad(t, false);
    return Py_NewRef(self);
  });
}

PyObject* take_history_of(PyObject* self, PyObject* from) {
  return guarded([&] {
    STRATA_CHECK_TYPE(is_tensor(from), "_take_history(): expected a Tensor, got ", Py_TYPE(from)->tp_name);
    take_history(tensor_of(self), tensor_of(from));
    return Py_NewRef(self);
  });
}

}  // namespace

int64_t int_argument(const char* function, const char* name, PyObject* o) {
  if (PyBool_Check(o) || (!PyLong_Check(o) && !PyIndex_Check(o)))
    raise(PyExc_TypeError, str_cat(function, "(): argument '", name, "' must be int, not ", Py_TYPE(o)->tp_name));
  return to_Int(o);
}

Tensor on_cpu(const Tensor& t) {
  if (t.device().is_cpu()) return t;
  return ops::_to_copy(t, std::nullopt, Device{}, false, std::nullopt);
}

PyMethodDef tensor_methods[] = {
    {"size", fast<method<"size", size>>(), METH_FASTCALL | METH_KEYWORDS, "The sizes, or that of one dim."},
    {"stride", fast<method<"stride", stride>>(), METH_FASTCALL | METH_KEYWORDS,
     "The strides in elements, or that of one dim."},
    {"is_contiguous", fast<method<"is_contiguous", is_contiguous>>(), METH_FASTCALL | METH_KEYWORDS,
     "Whether the elements lie in memory in the order of the format."},
    {"dim", plain<dim>, METH_NOARGS, "The number of dims."},
    {"ndimension", plain<dim>, METH_NOARGS, "The number of dims."},
    {"numel", plain<numel>, METH_NOARGS, "The number of elements."},
    {"nelement", plain<numel>, METH_NOARGS, "The number of elements."},
    {"element_size", plain<element_size>, METH_NOARGS, "Bytes of one element."},
    {"storage_offset", plain<storage_offset>, METH_NOARGS, "Where in its storage it begins, in elements."},
    {"data_ptr", plain<data_ptr>, METH_NOARGS, "Address of the first element; 0 when there is none."},
    {"is_floating_point", plain<is_floating_point>, METH_NOARGS, "Its dtype is a floating-point one."},
    {"is_complex", plain<is_complex>, METH_NOARGS, "Its dtype is a complex one."},
    {"is_signed", plain<is_signed>, METH_NOARGS, "Its dtype has negative values."},
    {"is_inference", plain<is_inference>, METH_NOARGS, "It was made in inference mode."},
    {"is_pinned", plain<is_pinned>, METH_NOARGS, "Whether a device's copies reach its memory by themselves."},
    {"_is_view", plain<is_view>, METH_NOARGS, "It is a view that autograd knows of."},
    {"_is_function_view", plain<is_function_view>, METH_NOARGS, "It is one that an autograd.Function gave, or of one."},
    {"_take_history", take_history_of, METH_O,
     "Of the tensor that shows the same elements; until its base is written."},
    {"get_device", plain<device_index>, METH_NOARGS, "The device's index; -1 for the CPU."},
    {"untyped_storage", plain<untyped_storage>, METH_NOARGS, "The block of memory that it shares with its views."},
    {"item", fast<method<"item", item>>(), METH_FASTCALL | METH_KEYWORDS, "The one element as a Python number."},
    {"tolist", plain<tolist>, METH_NOARGS, "The values as nested lists, or one number for a 0-dim tensor."},
    {"__complex__", plain<to_complex_number>, METH_NOARGS, "The one element as a complex number."},
    {"detach_", detach_inplace, METH_NOARGS, "Cuts the tensor off from what made it, and returns it."},
    {"requires_grad_", fast<method<"requires_grad_", set_requires>>(), METH_FASTCALL | METH_KEYWORDS,
     "Sets requires_grad (True unless said otherwise) and returns self."},
    {"to", fast<method<"to", tensor_to>>(), METH_FASTCALL | METH_KEYWORDS,
     "to(dtype), to(device), to(device, dtype), to(other): self where nothing changes, else a converted copy."},
    {"type", fast<method<"type", tensor_type>>(), METH_FASTCALL | METH_KEYWORDS,
     "The legacy name of the type, or the tensor converted to a type given by dtype or by such a name."},
    {"cpu", fast<method<"cpu", tensor_cpu>>(), METH_FASTCALL | METH_KEYWORDS, "The tensor in the CPU's memory."},
    {"float", fast<method<"float", to_type<DType::F32>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.float32)."},
    {"double", fast<method<"double", to_type<DType::F64>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.float64)."},
    {"half", fast<method<"half", to_type<DType::F16>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.float16)."},
    {"bfloat16", fast<method<"bfloat16", to_type<DType::BF16>>>(), METH_FASTCALL | METH_KEYWORDS,
     "to(strata.bfloat16)."},
    {"long", fast<method<"long", to_type<DType::I64>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.int64)."},
    {"int", fast<method<"int", to_type<DType::I32>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.int32)."},
    {"short", fast<method<"short", to_type<DType::I16>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.int16)."},
    {"char", fast<method<"char", to_type<DType::I8>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.int8)."},
    {"byte", fast<method<"byte", to_type<DType::U8>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.uint8)."},
    {"bool", fast<method<"bool", to_type<DType::Bool>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.bool)."},
    {"cfloat", fast<method<"cfloat", to_type<DType::C64>>>(), METH_FASTCALL | METH_KEYWORDS, "to(strata.complex64)."},
    {"cdouble", fast<method<"cdouble", to_type<DType::C128>>>(), METH_FASTCALL | METH_KEYWORDS,
     "to(strata.complex128)."},
    {"numpy", fast<method<"numpy", tensor_numpy>>(), METH_FASTCALL | METH_KEYWORDS, "An ndarray over the same memory."},
    {"__array__", fast<method<"__array__", tensor_array>>(), METH_FASTCALL | METH_KEYWORDS, "For numpy.asarray()."},
    {"__dlpack__", fast<method<"__dlpack__", tensor_dlpack>>(), METH_FASTCALL | METH_KEYWORDS, "A DLPack capsule."},
    {"__dlpack_device__", fast<method<"__dlpack_device__", tensor_dlpack_device>>(), METH_FASTCALL | METH_KEYWORDS,
     "(device type, index) by DLPack's numbers."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace strata::py
