// DLPack in both directions, without copies.
#include "bind/tensor/dlpack.h"
#include "base/checked.h"
#include "bind/args/convert.h"
#include "bind/tensor/methods.h"
#include "dispatch/seen.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops/copy.h"

namespace strata::py {

namespace {

// What an exported tensor needs to stay valid.
template <class M>
struct Exported {
  M managed;
  Tensor tensor;
  DimVec sizes, strides;
};

dlpack::Type type_of(DType t) {
  const DTypeTraits& tr = traits(t);
  uint8_t code = t == DType::BF16             ? dlpack::BFloat
                 : tr.kind == DKind::Bool     ? dlpack::Bool
                 : tr.kind == DKind::Unsigned ? dlpack::UInt
                 : tr.kind == DKind::Signed   ? dlpack::Int
                 : tr.kind == DKind::Float    ? dlpack::Float
                                              : dlpack::Complex;
  return {code, uint8_t(tr.bits), 1};
}

DType dtype_of(dlpack::Type type) {
  STRATA_CHECK(type.lanes == 1, "from_dlpack: expected elements of one lane, got ", type.lanes);
  for (int i = 0; i < kDTypeCount; ++i) {
    dlpack::Type t = type_of(DType(i));
    if (t.code == type.code && t.bits == type.bits) return DType(i);
  }
  throw_error(ErrorKind::Runtime,
              str_cat("from_dlpack: no dtype for code ", int(type.code), " with ", int(type.bits), " bits"));
}

template <class M>
void destroy_exported(M* m) {
  delete static_cast<Exported<M>*>(m->context);
}

template <class M>
Exported<M>* fill(const Tensor& t) {
  t.storage()->pin();
  auto* e = new Exported<M>;
  e->tensor = t;
  e->sizes = DimVec(t.sizes());
  e->strides = DimVec(t.strides());
  // A dim of size 1 has any stride; consumers like the contiguous one.
  for (size_t i = 0; i < e->sizes.size(); ++i)
    if (e->sizes[i] == 1) e->strides[i] = 1;
  e->managed.array = {t.numel() ? t.data_ptr() : nullptr,
                      {dlpack::kCpu, 0},
                      int32_t(t.dim()),
                      type_of(t.dtype()),
                      e->sizes.data(),
                      e->strides.data(),
                      0};
  e->managed.context = e;
  e->managed.deleter = destroy_exported<M>;
  return e;
}

// A capsule that nobody has taken over frees its tensor.
template <class M>
void drop_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (!name || std::string_view(name).substr(0, 4) == "used") return;
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (m && m->deleter) m->deleter(m);
}

bool takes_versions(PyObject* max_version) {
  if (!max_version || !PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) != 2) return false;
  return to_Int(PyTuple_GET_ITEM(max_version, 0)) >= 1;
}

template <class M>
void release_imported(void* p) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  M* m = static_cast<M*>(p);
  if (m->deleter) m->deleter(m);
  PyGILState_Release(state);
}

// Takes the array over from its capsule, which is renamed to `used`: from then on the storage calls the deleter, also
// where making the tensor fails.
template <class M>
Tensor import_array(M* m, PyObject* capsule, const char* used) {
  const dlpack::Array& a = m->array;
  STRATA_CHECK(a.device.type == dlpack::kCpu, "from_dlpack: expected memory of the CPU, got DLPack device type ",
               a.device.type, "; copy the array to the host first");
  DimVec sizes, strides;
  for (int i = 0; i < a.ndim; ++i) {
    sizes.push_back(a.shape[i]);
    if (a.strides) {
      STRATA_CHECK(a.strides[i] >= 0, "from_dlpack: expected strides of 0 or more, got ", a.strides[i],
                   "; copy the array first");
      strides.push_back(a.strides[i]);
    }
  }
  if (!a.strides) strides = contiguous_strides(sizes);
  DType dtype = dtype_of(a.dtype);
  int64_t bytes = checked_bytes(strided_span(sizes, strides), itemsize(dtype), "from_dlpack");
  void* data = static_cast<char*>(a.data) + a.byte_offset;
  PyCapsule_SetName(capsule, used);
  Ref<Storage> storage = Storage::borrow(data, size_t(bytes), Device{}, release_imported<M>, m);
  return make_tensor_over(std::move(storage), sizes, strides, 0, dtype);
}

Tensor import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto* m = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    STRATA_CHECK(m->major == dlpack::kMajor, "from_dlpack: expected DLPack ", dlpack::kMajor, ".x, got ", m->major, ".",
                 m->minor);
    if (m->flags & dlpack::kReadOnly)
      warn(
          "The given array is read-only, and tensors are writable: writing to this one is undefined. Copy the array to "
          "be "
          "safe.");
    return import_array(m, capsule, "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    auto* m = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
    return import_array(m, capsule, "used_dltensor");
  }
  throw_error(ErrorKind::Runtime, "from_dlpack: the capsule holds no DLPack tensor, or one that was consumed already");
}

PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* v[3] = {};
    read_args("from_dlpack", {"ext_tensor", "device", "copy"}, 1, v, args, n, kw, 1);
    Tensor t = tensor_from_dlpack(v[0]);
    return wrap(converted(t, std::nullopt, to_DeviceOpt(v[1]), false, v[2] == Py_True));
  });
}

PyObject* to_dlpack(PyObject*, PyObject* o) {
  if (!is_tensor(o)) {
    PyErr_Format(PyExc_TypeError, "to_dlpack(): argument 'tensor' must be Tensor, not %s", Py_TYPE(o)->tp_name);
    return nullptr;
  }
  return guarded([&] {
    refuse_sparse(o, "to_dlpack");
    return tensor_dlpack(o, nullptr, 0, nullptr);
  });
}

PyMethodDef functions[] = {
    {"from_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_dlpack)),
     METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n\nA tensor over the memory of an object with __dlpack__, or "
     "of a "
     "DLPack capsule."},
    {"to_dlpack", to_dlpack, METH_O, "to_dlpack(tensor)\n\nA DLPack capsule over the tensor's memory."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Tensor tensor_from_dlpack(PyObject* o) {
  if (PyCapsule_CheckExact(o)) return import_capsule(o);
  Own method(PyObject_GetAttrString(o, "__dlpack__"));
  if (!method) {
    PyErr_Clear();
    raise(PyExc_TypeError,
          str_cat("from_dlpack: expected an object with __dlpack__ or a DLPack capsule, got ", Py_TYPE(o)->tp_name));
  }
  Own none(checked(PyTuple_New(0)));
  Own keywords(checked(Py_BuildValue("{s:(II)}", "max_version", dlpack::kMajor, dlpack::kMinor)));
  Own capsule(PyObject_Call(method.get(), none.get(), keywords.get()));
  if (!capsule) {
    // Older exporters know no max_version.
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();
    capsule = Own(checked(PyObject_Call(method.get(), none.get(), nullptr)));
  }
  return import_capsule(capsule.get());
}

// tensor.__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[4] = {};
  read_args("__dlpack__", {"stream", "max_version", "dl_device", "copy"}, 0, v, args, n, kw);
  Tensor t = tensor_of(self);
  check_reading("__dlpack__");
  if (t.requires_grad()) raise(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
  if (!t.device().is_cpu()) raise(PyExc_BufferError, "Can't export memory of this device; use tensor.cpu()");
  const bool copy = v[3] == Py_True;
  if (copy) t = ops::clone(t, MemoryFormat::Contiguous);
  if (takes_versions(v[1])) {
    auto* e = fill<dlpack::ManagedVersioned>(t);
    e->managed.major = dlpack::kMajor;
    e->managed.minor = dlpack::kMinor;
    e->managed.flags = (copy ? dlpack::kCopied : 0) | (t.storage()->read_only() ? dlpack::kReadOnly : 0);
    return checked(PyCapsule_New(&e->managed, "dltensor_versioned", drop_capsule<dlpack::ManagedVersioned>));
  }
  if (t.storage()->read_only())
    raise(PyExc_BufferError,
          "Can't export a result of conj(), which is read-only, to a consumer that knows no such "
          "arrays; use its clone()");
  auto* e = fill<dlpack::Managed>(t);
  return checked(PyCapsule_New(&e->managed, "dltensor", drop_capsule<dlpack::Managed>));
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  read_args("__dlpack_device__", {}, 0, nullptr, args, n, kw);
  if (!tensor_of(self).device().is_cpu())
    raise(PyExc_BufferError, "Can't export memory of this device; use tensor.cpu()");
  return checked(Py_BuildValue("(ii)", dlpack::kCpu, 0));
}

void init_dlpack(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
