// Nested Python sequences as tensors: sizes from the first items, a dtype that fits all, then the values.
#include <cstring>

#include "bind/args/convert.h"
#include "bind/args/parse.h"
#include "bind/tensor/methods.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/view.h"

namespace strata::py {

namespace {

bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }

bool is_list_like(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (!is_tensor(o) && !is_text(o) && !PyDict_Check(o) && PySequence_Check(o) &&
          !(is_array(o) && PyObject_Length(o) < 0 && (PyErr_Clear(), true)) && !is_numpy_kind(o, "generic"));
}

// The items of any sequence; lists and tuples are not copied.
struct Sequence {
  Own fast;
  Items items;
  explicit Sequence(PyObject* o) : fast(checked(PySequence_Fast(o, "not a sequence"))), items(fast.get()) {}
};

DimVec sizes_of(PyObject* data) {
  DimVec sizes;
  Own at(Py_NewRef(data));
  while (is_list_like(at.get())) {
    Sequence s(at.get());
    sizes.push_back(s.items.size());
    if (sizes.size() > TensorImpl::kMaxDims)
      raise(PyExc_ValueError, str_cat("too many dimensions '", Py_TYPE(at.get())->tp_name, "'"));
    if (s.items.size() == 0) break;
    at = s.items.own(0);
  }
  if (!sizes.empty() && is_text(at.get()))
    raise(PyExc_ValueError, str_cat("too many dimensions '", Py_TYPE(at.get())->tp_name, "'"));
  return sizes;
}

std::optional<DType> numpy_dtype(PyObject* o) {
  Own dtype(PyObject_GetAttrString(o, "dtype"));
  Own name(dtype ? PyObject_GetAttrString(dtype.get(), "name") : nullptr);
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return std::nullopt;
  }
  std::string_view text = to_Str(name.get());
  if (text == "longlong") text = "int64";
  if (text == "ulonglong") text = "uint64";
  return dtype_from_name(text);
}

// Values outside of a type raise, except that negative ones wrap into unsigned types, as in PyTorch.
template <class T>
T narrowed(int64_t v, DType dtype) {
  bool fits = std::is_signed_v<T>
                  ? v >= int64_t(std::numeric_limits<T>::min()) && v <= int64_t(std::numeric_limits<T>::max())
                  : v <= int64_t(std::numeric_limits<T>::max()) && -v <= int64_t(std::numeric_limits<T>::max());
  STRATA_CHECK(fits, "value cannot be converted to type ", dtype_name(dtype), " without overflow");
  return static_cast<T>(v);
}

int64_t integer_of(PyObject* o) {
  if (PyLong_Check(o)) return to_Int(o);
  if (PyFloat_Check(o) || is_numpy_kind(o, "floating")) {
    Own whole(checked(PyNumber_Long(o)));
    return to_Int(whole.get());
  }
  Own exact(checked(PyNumber_Index(o)));
  return to_Int(exact.get());
}

// Of numbers alone: None and other objects are false or true to Python, and no elements of a tensor.
bool truth_of(PyObject* o) {
  if (PyBool_Check(o)) return o == Py_True;
  if (PyFloat_Check(o) || PyComplex_Check(o) || is_array(o) || is_numpy_kind(o, "generic")) return to_Bool(o);
  Own whole(checked(PyNumber_Index(o)));
  return to_Bool(whole.get());
}

double real_of(PyObject* o) {
  if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  double v = PyFloat_AsDouble(o);
  if (v == -1.0 && PyErr_Occurred()) throw PythonError();
  return v;
}

std::complex<double> complex_of(PyObject* o) {
  Py_complex v = PyComplex_AsCComplex(o);
  if (v.real == -1.0 && PyErr_Occurred()) throw PythonError();
  return {v.real, v.imag};
}

template <class T>
void put(char* to, T v) {
  std::memcpy(to, &v, sizeof(T));
}

struct Store {
  IntArrayRef sizes;
  DType dtype;
  int64_t item;

  void run(PyObject* o, char*& to, size_t dim) const {
    if (dim == sizes.size()) {
      store_number(to, dtype, o);
      to += item;
      return;
    }
    Sequence s(o);
    auto check_length = [&](bool fits) {
      if (!fits)
        raise(PyExc_ValueError,
              str_cat("expected sequence of length ", sizes[dim], " at dim ", dim, " (got ", s.items.size(), ")"));
    };
    check_length(s.items.size() == sizes[dim]);
    for (Py_ssize_t i = 0; i < sizes[dim]; ++i) {
      check_length(i < s.items.size());  // an item's own code may have taken others away
      run(s.items.own(i).get(), to, dim + 1);
    }
  }
};

// `rank`: of the tensor that `o` is a part of. No list is looked into beyond it, so one that holds itself ends too.
DType infer_dtype(PyObject* o, size_t rank) {
  if (PyFloat_CheckExact(o)) return default_dtype();
  if (PyBool_Check(o)) return DType::Bool;
  if (PyLong_Check(o)) return DType::I64;
  if (is_tensor(o)) return tensor_of(o).dtype();
  if (is_text(o)) raise(PyExc_TypeError, str_cat("new(): invalid data type '", Py_TYPE(o)->tp_name, "'"));
  if (is_array(o) || is_numpy_kind(o, "generic")) {
    std::optional<DType> found = numpy_dtype(o);
    if (found) return *found;
  }
  if (PyFloat_Check(o)) return default_dtype();
  if (PyComplex_Check(o)) return default_complex_dtype();
  if (is_list_like(o)) {
    if (rank == 0) return DType::I64;  // a list where a number is due: storing it raises
    Sequence s(o);
    if (s.items.size() == 0) return default_dtype();
    std::optional<DType> all;
    PyTypeObject* last = nullptr;
    for (Py_ssize_t i = 0; i < s.items.size(); ++i) {
      PyObject* item = s.items[i];
      // Numbers of one type need to be asked once.
      if (Py_TYPE(item) == last && (last == &PyFloat_Type || last == &PyLong_Type || last == &PyBool_Type)) continue;
      last = Py_TYPE(item);
      if (item == o) raise(PyExc_TypeError, "new(): self-referential lists are incompatible");
      Own held(Py_NewRef(item));
      DType d = infer_dtype(item, rank - 1);
      all = all ? promote_types(*all, d) : d;
    }
    return *all;
  }
  if (PyIndex_Check(o) && !PyDict_Check(o)) return DType::I64;
  raise(PyExc_RuntimeError, str_cat("Could not infer dtype of ", Py_TYPE(o)->tp_name));
}

}  // namespace

void store_number(char* to, DType dtype, PyObject* o) {
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    if (t.numel() != 1) raise(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    Own number(wrap(ops::item(t)));
    return store_number(to, dtype, number.get());
  }
  switch (dtype) {
    case DType::Bool:
      return put(to, truth_of(o));
    case DType::U8:
      return put(to, narrowed<uint8_t>(integer_of(o), dtype));
    case DType::I8:
      return put(to, narrowed<int8_t>(integer_of(o), dtype));
    case DType::U16:
      return put(to, narrowed<uint16_t>(integer_of(o), dtype));
    case DType::I16:
      return put(to, narrowed<int16_t>(integer_of(o), dtype));
    case DType::U32:
      return put(to, narrowed<uint32_t>(integer_of(o), dtype));
    case DType::I32:
      return put(to, narrowed<int32_t>(integer_of(o), dtype));
    case DType::I64:
      return put(to, integer_of(o));
    case DType::U64: {
      if (PyFloat_Check(o)) raise(PyExc_TypeError, "an integer is required");
      if (!PyLong_Check(o)) return put(to, integer_of(o));
      const Scalar s = to_Scalar(o);
      if (s.to_int() < 0 && !s.is_unsigned64()) raise(PyExc_OverflowError, "can't convert negative int to unsigned");
      return put(to, s.to_int());
    }
    case DType::F16:
      return put(to, to_half(float(real_of(o))));
    case DType::BF16:
      return put(to, to_bfloat16(float(real_of(o))));
    case DType::F32:
      return put(to, float(real_of(o)));
    case DType::F64:
      return put(to, real_of(o));
    case DType::C64:
      return put(to, std::complex<float>(complex_of(o)));
    case DType::C128:
      return put(to, complex_of(o));
  }
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, std::optional<Device> device) {
  if (is_text(data)) raise(PyExc_TypeError, str_cat("new(): invalid data type '", Py_TYPE(data)->tp_name, "'"));
  if (is_tensor(data)) refuse_sparse(data, "tensor()");
  if (is_tensor(data)) return converted(ops::detach(tensor_of(data)), dtype, device, false, true);
  if (is_array(data)) {
    Tensor shared = tensor_over_array(data, false);
    return converted(shared, dtype, device, false, true);
  }
  DimVec sizes = sizes_of(data);
  DType type = dtype ? *dtype : infer_dtype(data, sizes.size());
  Tensor t = make_tensor(sizes, type);
  if (t.is_meta()) return t;
  char* to = t.numel() || sizes.empty() ? t.bytes() : nullptr;
  Store{sizes, type, t.itemsize()}.run(data, to, 0);
  return converted(t, std::nullopt, device);
}

bool is_sparse(PyObject* tensor) {
  PyTypeObject* type = Py_TYPE(tensor);
  if (type == tensor_base_type || reinterpret_cast<PyObject*>(type) == tensor_class) return false;
  // Of the class: classes of the program may ask __torch_function__ for what an instance says.
  static PyObject *const rows = PyUnicode_InternFromString("is_sparse_csr"), *const places = PyUnicode_InternFromString(
                                                                                 "is_sparse");
  return _PyType_Lookup(type, places) == Py_True || _PyType_Lookup(type, rows) == Py_True;
}

void refuse_sparse(PyObject* tensor, const char* what) {
  if (is_sparse(tensor))
    throw_error(
        ErrorKind::NotImplemented,
        str_cat(what, ": expected a dense tensor, got a sparse one: call its to_dense(), or clone() for a copy"));
}

}  // namespace strata::py
