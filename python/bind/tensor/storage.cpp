// strata.UntypedStorage: the block of memory below a tensor, for pickling and for sharing memory.
#include <cstring>

#include "base/checked.h"
#include "bind/args/parse.h"
#include "bind/tensor/methods.h"
#include "bind/types/dealloc.h"
#include "dispatch/seen.h"
#include "strata/generated/ops/create.h"

namespace strata::py {

PyTypeObject* storage_type;

namespace {

Ref<Storage>& storage_of(PyObject* o) { return reinterpret_cast<PyStorage*>(o)->storage; }

// The storage comes ready made: one that is built inside the object and throws would be destroyed there, and once more
// with the object.
PyObject* wrap_as(PyTypeObject* type, Ref<Storage> storage) {
  PyObject* o = checked(type->tp_alloc(type, 0));
  new (&storage_of(o)) Ref<Storage>(std::move(storage));
  return o;
}

struct Release {
  Py_buffer* view;
  ~Release() { PyBuffer_Release(view); }  // does nothing to one that was never filled
};

// UntypedStorage(nbytes=0), UntypedStorage(bytes-like), UntypedStorage(sequence of ints below 256); on a device.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject *source = nullptr, *where = nullptr;
    static const char* names[] = {"source", "device", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", const_cast<char**>(names), &source, &where))
      throw PythonError();
    Py_buffer view{};
    int64_t bytes = 0;
    Own sequence(source && PySequence_Check(source) && !PyObject_CheckBuffer(source)
                     ? checked(PyBytes_FromObject(source))
                     : nullptr);
    if (sequence.get()) source = sequence.get();
    if (source && PyObject_CheckBuffer(source)) {
      checked(PyObject_GetBuffer(source, &view, PyBUF_SIMPLE));
      bytes = view.len;
    } else if (source) {
      bytes = int_argument("UntypedStorage", "source", source);
      STRATA_CHECK(bytes >= 0, "UntypedStorage: expected 0 or more bytes, got ", bytes);
    }
    Release release{&view};
    const Device device = where && where != Py_None ? to_Device(where) : Device{};
    if (!device.is_cpu()) {
      STRATA_CHECK(!view.buf, "UntypedStorage: expected a length for device ", device, ", got content");
      return wrap_as(type, ops::empty({bytes}, DType::U8, device).storage());
    }
    Ref<Storage> storage = Storage::make(cpu_allocator(), size_t(bytes));
    if (bytes && view.buf) std::memcpy(storage->data(), view.buf, size_t(bytes));
    return wrap_as(type, std::move(storage));
  });
}

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  Storage& s = *storage_of(o);
  if (!s.device().is_cpu()) {
    PyErr_SetString(PyExc_BufferError, "UntypedStorage: only memory of the CPU can be read; copy it with .cpu() first");
    return -1;
  }
  if (!s.data() && s.bytes()) {
    PyErr_SetString(PyExc_BufferError, "UntypedStorage: it has a length only and no memory (meta execution)");
    return -1;
  }
  if (recording_here()) {
    PyErr_SetString(PyExc_BufferError, "UntypedStorage: its memory cannot be read while operators are recorded");
    return -1;
  }
  s.pin();
  return PyBuffer_FillInfo(view, o, s.data(), Py_ssize_t(s.bytes()), s.read_only(), flags);
}

PyObject* bytes(PyObject* o, PyObject*) { return PyLong_FromSize_t(storage_of(o)->bytes()); }
Py_ssize_t length(PyObject* o) { return Py_ssize_t(storage_of(o)->bytes()); }
PyObject* data_ptr(PyObject* o, PyObject*) {
  return guarded([&] {
    check_reading("UntypedStorage.data_ptr");
    return PyLong_FromVoidPtr(storage_of(o)->data());
  });
}

PyObject* size_in_memory(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromSize_t(size_t(Py_TYPE(o)->tp_basicsize) + storage_of(o)->bytes()); });
}
PyObject* is_borrowed(PyObject* o, PyObject*) { return PyBool_FromLong(storage_of(o)->borrowed()); }
PyObject* to_bytes(PyObject* o, PyObject*) {
  return guarded([&] {
    check_reading("UntypedStorage.tobytes");
    Storage& s = *storage_of(o);
    STRATA_CHECK_NOT_IMPLEMENTED(s.data() || !s.bytes(),
                                 "tobytes: the storage has a length only and no memory (meta execution)");
    return checked(PyBytes_FromStringAndSize(static_cast<const char*>(s.data()), Py_ssize_t(s.bytes())));
  });
}
PyObject* resize(PyObject* o, PyObject* n) {
  return guarded([&] {
    STRATA_CHECK(!recording_here(), "UntypedStorage.resize_: memory cannot be resized while operators are recorded");
    int64_t wanted = int_argument("resize_", "nbytes", n);
    STRATA_CHECK(wanted >= 0, "UntypedStorage.resize_: expected 0 or more bytes, got ", wanted);
    storage_of(o)->resize(size_t(wanted));
    return Py_NewRef(o);
  });
}

// The rest of the class is Python's (strata/_storage_methods.py), and is given to it when something is not found.
bool complete() {
  static bool done = false;
  if (done) return false;
  checked(PyImport_ImportModule("strata._storage_methods"));  // stays loaded
  return done = true;
}
PyObject* attribute(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  return guarded([&]() -> PyObject* {
    if (complete()) {
      Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
      return PyObject_GenericGetAttr(o, name);
    }
    PyErr_Restore(type, value, trace);
    return nullptr;
  });
}
PyObject* item(PyObject* o, PyObject* index) {
  return guarded([&] { return complete() ? PyObject_GetItem(o, index) : nullptr; });
}
int set_item(PyObject* o, PyObject* index, PyObject* value) {
  try {
    return complete() ? (value ? PyObject_SetItem(o, index, value) : PyObject_DelItem(o, index)) : -1;
  } catch (...) {
    set_python_error();
    return -1;
  }
}
PyObject* iterated(PyObject* o) {
  return guarded([&] { return complete() ? PyObject_GetIter(o) : nullptr; });
}
PyObject* shown(PyObject* o) {
  return guarded([&] { return complete() ? PyObject_Repr(o) : nullptr; });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != storage_type) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* o) { return _Py_HashPointer(storage_of(o).get()); }

PyObject* device(PyObject* o, void*) {
  return guarded([&] {
    const Storage& s = *storage_of(o);
    return wrap(s.bytes() && !s.data() && !s.handle() ? Device{1, -1} : s.device());  // a length alone: meta
  });
}
PyObject* identity(PyObject* o, void*) { return PyLong_FromVoidPtr(storage_of(o).get()); }

PyObject* reduce(PyObject* o, PyObject*) {
  PyObject* content = to_bytes(o, nullptr);
  return content ? Py_BuildValue("O(N)", storage_type, content) : nullptr;
}

// _tensor_over_storage(storage, dtype, offset, size, stride): a tensor over the storage's memory.
PyObject* tensor_over(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* v[5] = {};
    read_args("_tensor_over_storage", {"storage", "dtype", "offset", "size", "stride"}, 5, v, args, n, kw, 5);
    if (Py_TYPE(v[0]) != storage_type)
      raise(PyExc_TypeError, "_tensor_over_storage: storage must be a strata.UntypedStorage");
    DType dtype = to_DType(v[1]);
    int64_t offset = int_argument("_tensor_over_storage", "offset", v[2]);
    for (int i : {3, 4})
      if (!PyTuple_Check(v[i]) && !PyList_Check(v[i]))
        raise(PyExc_TypeError, "_tensor_over_storage: size and stride must be tuples of ints");
    DimVec size = to_IntList(v[3]).v, stride = to_IntList(v[4]).v;
    STRATA_CHECK_VALUE(size.size() == stride.size(), "_tensor_over_storage: expected as many strides as sizes, got ",
                       stride.size(), " and ", size.size());
    // Files are not trusted: nothing may reach outside of the storage.
    for (size_t i = 0; i < size.size(); ++i)
      STRATA_CHECK_VALUE(size[i] >= 0 && stride[i] >= 0,
                         "_tensor_over_storage: expected sizes and strides of 0 or more, got ", size, " and ", stride);
    int64_t end = checked_add(offset, strided_span(size, stride), "_tensor_over_storage");
    STRATA_CHECK_VALUE(offset >= 0 && checked_bytes(end, itemsize(dtype)) <= int64_t(storage_of(v[0])->bytes()),
                       "_tensor_over_storage: a tensor of sizes ", size, ", strides ", stride, " at offset ", offset,
                       " does not fit into ", storage_of(v[0])->bytes(), " bytes of ", dtype);
    return wrap(make_tensor_over(storage_of(v[0]), size, stride, offset, dtype));
  });
}

PyMethodDef methods[] = {
    {"nbytes", bytes, METH_NOARGS, "Its length in bytes."},
    {"size", bytes, METH_NOARGS, "Its length in bytes."},
    {"__sizeof__", size_in_memory, METH_NOARGS, "Bytes of the object and of its memory, for sys.getsizeof()."},
    {"data_ptr", data_ptr, METH_NOARGS, "Its address."},
    {"tobytes", to_bytes, METH_NOARGS, "A copy of its content."},
    {"is_borrowed", is_borrowed, METH_NOARGS, "The memory belongs to another library."},
    {"resize_", resize, METH_O, "Changes its length, keeping what fits; returns the storage."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef attributes[] = {
    {"device", device, nullptr, "Where the memory is.", nullptr},
    {"_cdata", identity, nullptr, "Address of the C++ storage.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_of<PyStorage>)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_sq_length, reinterpret_cast<void*>(length)},
    {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
    {Py_mp_subscript, reinterpret_cast<void*>(item)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_tp_iter, reinterpret_cast<void*>(iterated)},
    {Py_tp_repr, reinterpret_cast<void*>(shown)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("UntypedStorage(nbytes or bytes-like)\n\nA block of memory that tensors share.")},
    {0, nullptr},
};
PyType_Spec spec = {"strata.UntypedStorage", sizeof(PyStorage), 0, Py_TPFLAGS_DEFAULT, slots};

// _exchange_memory(a, b): see Storage::exchange.
PyObject* exchange_memory(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* v[2] = {};
    read_args("_exchange_memory", {"a", "b"}, 2, v, args, n, kw, 2);
    for (PyObject* o : v)
      if (Py_TYPE(o) != storage_type) raise(PyExc_TypeError, "_exchange_memory: expected two strata.UntypedStorage");
    Storage &a = *storage_of(v[0]), &b = *storage_of(v[1]);
    STRATA_CHECK_VALUE(a.bytes() == b.bytes() && a.device() == b.device(),
                       "_exchange_memory: expected storages of as many bytes on one device, got ", a.bytes(), " on ",
                       a.device(), " and ", b.bytes(), " on ", b.device());
    return PyBool_FromLong(a.exchange(b));
  });
}

PyMethodDef functions[] = {
    {"_exchange_memory", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exchange_memory)),
     METH_FASTCALL | METH_KEYWORDS, "Exchanges the memory of two storages; False where others look at either's."},
    {"_tensor_over_storage", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_over)),
     METH_FASTCALL | METH_KEYWORDS, "A tensor over a storage's memory; raises ValueError where it would not fit."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* wrap_storage(const Ref<Storage>& s) { return wrap_as(storage_type, s); }

void init_storage(PyObject* module) {
  storage_type = add_type(module, &spec);
  add_functions(module, functions);
}

}  // namespace strata::py
