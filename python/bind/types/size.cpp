// strata.Size: a tuple of ints that knows the number of elements.
#include "base/checked.h"
#include "bind/args/parse.h"
#include "bind/types/types.h"

namespace strata::py {

PyTypeObject* size_type;

namespace {

// A Size made of a tuple whose items are ints; takes the tuple.
PyObject* from_tuple(PyObject* tuple) {
  Own owned(checked(tuple));
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* size = checked(size_type->tp_alloc(size_type, n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return size;
}

PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* items = nullptr;
    static const char* names[] = {"iterable", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Size", const_cast<char**>(names), &items)) throw PythonError();
    Own list(checked(items ? PySequence_List(items) : PyList_New(0)));  // a tuple may be the caller's
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      PyObject* item = PyList_GET_ITEM(list.get(), i);
      if (PyBool_Check(item)) PyList_SetItem(list.get(), i, PyLong_FromLong(item == Py_True));
      if (PyLong_Check(item)) continue;
      if (!is_int_like(item))
        raise(PyExc_TypeError,
              str_cat("strata.Size() takes an iterable of 'int' (item ", i, " is '", Py_TYPE(item)->tp_name, "')"));
      PyList_SetItem(list.get(), i, wrap(to_Int(item)));
    }
    return from_tuple(checked(PyList_AsTuple(list.get())));
  });
}

PyObject* repr(PyObject* o) {
  return guarded([&] {
    std::string text = "strata.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      Own shown(checked(PyObject_Repr(PyTuple_GET_ITEM(o, i))));
      text += (i ? ", " : "") + std::string(to_Str(shown.get()));
    }
    text += "])";
    return checked(shown(text));
  });
}

PyObject* numel(PyObject* o, PyObject*) {
  return guarded([&] {
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      n = checked_mul(n, to_Int(PyTuple_GET_ITEM(o, i)), "Size.numel");
    return wrap(n);
  });
}

PyObject* reduce(PyObject* o, PyObject*) {
  PyObject* items = PySequence_List(o);
  return items ? Py_BuildValue("O(N)", size_type, items) : nullptr;
}

PyObject* add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    Py_ssize_t na = PyTuple_GET_SIZE(a), nb = PyTuple_GET_SIZE(b);
    Own r(checked(size_type->tp_alloc(size_type, na + nb)));
    for (Py_ssize_t i = 0; i < na; ++i) PyTuple_SET_ITEM(r.get(), i, Py_NewRef(PyTuple_GET_ITEM(a, i)));
    for (Py_ssize_t i = 0; i < nb; ++i) PyTuple_SET_ITEM(r.get(), na + i, Py_NewRef(PyTuple_GET_ITEM(b, i)));
    return r.release();
  });
}

PyObject* repeat(PyObject* o, Py_ssize_t n) {
  return guarded([&] { return from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(o, n)); });
}

PyObject* item(PyObject* o, PyObject* index) {
  PyObject* r = PyTuple_Type.tp_as_mapping->mp_subscript(o, index);
  if (!r || !PySlice_Check(index)) return r;
  return guarded([&] { return from_tuple(r); });
}

PyMethodDef methods[] = {
    {"numel", numel, METH_NOARGS, "The number of elements of a tensor of that size."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_nb_add, reinterpret_cast<void*>(add)},
    {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
    {Py_mp_subscript, reinterpret_cast<void*>(item)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("Size(iterable=())\n\nThe sizes of a tensor: a tuple of ints.")},
    {0, nullptr},
};
PyType_Spec spec = {"strata.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* make_size(IntArrayRef sizes) {
  PyObject* o = checked(size_type->tp_alloc(size_type, Py_ssize_t(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(o, i, PyLong_FromLongLong(sizes[i]));
  return o;
}

PyObject* make_ints(IntArrayRef values) {
  PyObject* o = checked(PyTuple_New(Py_ssize_t(values.size())));
  for (size_t i = 0; i < values.size(); ++i) PyTuple_SET_ITEM(o, i, PyLong_FromLongLong(values[i]));
  return o;
}

void init_size(PyObject* module) { size_type = add_type(module, &spec, reinterpret_cast<PyObject*>(&PyTuple_Type)); }

}  // namespace strata::py
