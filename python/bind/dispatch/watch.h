// What guards know of tensors, and of the dicts, lists and classes that code reads which is called as it is.
#pragma once
#include "bind/dispatch/graph.h"
#include "bind/dispatch/instances.h"
#include "grad/engine/variable.h"

namespace strata::py {

struct TensorFacts {
  PyTypeObject* type;
  DType dtype;
  Device device;
  bool grad, leaf, inference;
  DimVec sizes, strides;  // a size of -1: any but 0 and 1; then sizes and strides become part of the key
  bool open = false;

  bool fits(PyObject* o, SizeKey& key) const {
    if (Py_TYPE(o) != type) return false;
    const Tensor& t = tensor_of(o);
    // Code with a backward in it would not call them; the capture refuses what has some.
    const PyObject* hooks = reinterpret_cast<PyTensor*>(o)->hooks;
    if (hooks && PyDict_Check(hooks) && PyDict_GET_SIZE(hooks)) return false;
    if (t.dtype() != dtype || t.device() != device || t.is_meta()) return false;
    const IntArrayRef s = t.sizes(), r = t.strides();
    if (s.size() != sizes.size()) return false;
    if (!open) {
      for (size_t i = 0; i < s.size(); ++i)  // a call of memcmp takes longer
        if (s[i] != sizes[i] || r[i] != strides[i]) return false;
    } else {
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] >= 0 ? s[i] != sizes[i] : s[i] < 2) return false;
        if (sizes[i] < 0) key.push_back(s[i]);
        key.push_back(r[i]);
      }
    }
    return needs_grad(t) == grad && t.is_leaf() == leaf && t.impl()->inference_ == inference;
  }
};

inline TensorFacts facts_of(PyObject* spec) {
  PyObject *type, *shape, *stride, *dtype, *device;
  int grad, leaf, inference;
  if (!PyArg_ParseTuple(spec, "OOOOOppp", &type, &shape, &stride, &dtype, &device, &grad, &leaf, &inference))
    throw PythonError();
  TensorFacts f{reinterpret_cast<PyTypeObject*>(type),
                to_DType(dtype),
                to_Device(device),
                bool(grad),
                bool(leaf),
                bool(inference),
                {},
                {}};
  for (auto [from, to] : {std::pair(shape, &f.sizes), std::pair(stride, &f.strides)})
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); ++i) {
      PyObject* n = PyTuple_GET_ITEM(from, i);
      f.open |= n == Py_None;
      to->push_back(n == Py_None ? -1 : PyLong_AsLongLong(n));
    }
  return f;
}

inline uint64_t version_of(PyObject* dict) { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }

// From Python 3.13 on a dict of attributes may lie inside of its object, where `object.name = value` is no change of
// the dict's version. What takes an item out gives it a place of its own.
inline void settle(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030D0000
  if (!reinterpret_cast<PyDictObject*>(dict)->ma_values) return;
  const bool empty = PyDict_GET_SIZE(dict) == 0;
  if (empty && PyDict_SetItemString(dict, "", Py_None) < 0) throw PythonError();
  const Own last(checked(PyObject_CallMethod(dict, "popitem", nullptr)));
  if (!empty && PyDict_SetItem(dict, PyTuple_GET_ITEM(last.get(), 0), PyTuple_GET_ITEM(last.get(), 1)) < 0)
    throw PythonError();
#else
  (void)dict;
#endif
}

// 0 where the class has none. (Up to Python 3.12 a flag says so, too.)
inline unsigned version_of(PyTypeObject* type) { return type->tp_version_tag; }

// A guards.Watch, or a library.Library: dicts and classes by the version that they had when they were last looked
// through.
struct WatchFacts {
  std::vector<std::pair<PyObject*, uint64_t>> dicts;
  std::vector<std::pair<PyTypeObject*, unsigned>> classes;
  std::vector<std::pair<PyObject*, std::vector<PyObject*>>> lists;
  std::vector<std::pair<PyObject*, TensorFacts>> tensors;

  explicit WatchFacts(PyObject* watch) {
    static PyObject *const lists_name = PyUnicode_InternFromString("lists"), *const tensors_name =
                                                                                 PyUnicode_InternFromString("tensors");
    const Own l(checked(PyObject_GetAttr(watch, lists_name))), t(checked(PyObject_GetAttr(watch, tensors_name)));
    look_at_dicts(watch);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(l.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(l.get(), i);
      PyObject* then = PyTuple_GET_ITEM(pair, 1);
      std::vector<PyObject*> items;
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(then); ++k) items.push_back(PyList_GET_ITEM(then, k));
      lists.emplace_back(PyTuple_GET_ITEM(pair, 0), std::move(items));
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(t.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(t.get(), i);
      tensors.emplace_back(PyTuple_GET_ITEM(pair, 0), facts_of(PyTuple_GET_ITEM(pair, 1)));
    }
    forget();
  }

  bool holds(PyObject* watch) {
    for (const auto& [list, then] : lists) {
      if (size_t(PyList_GET_SIZE(list)) != then.size()) return false;
      for (size_t i = 0; i < then.size(); ++i)
        if (PyList_GET_ITEM(list, Py_ssize_t(i)) != then[i]) return false;
    }
    SizeKey none;
    for (const auto& [t, facts] : tensors)
      if (!facts.fits(t, none)) return false;
    bool same = PyList_GET_SIZE(dict_list_) + PyList_GET_SIZE(class_list_) == Py_ssize_t(dicts.size() + classes.size());
    for (const auto& [dict, version] : dicts) same &= version_of(dict) == version;
    for (const auto& [type, version] : classes) same &= version && type->tp_version_tag == version;
    if (STRATA_LIKELY(same)) return true;
    // Versions are read before it is asked: a change by another thread meanwhile has it asked again.
    look_at_dicts(watch);
    const Own asked(checked(PyObject_CallMethod(watch, "same", nullptr)));
    if (asked.get() == Py_True) return true;
    forget();
    return false;
  }

 private:
  PyObject *dict_list_ = nullptr,
           *class_list_ = nullptr;  // of the watch, which lives as long; sizes of later calls add to them

  void look_at_dicts(PyObject* watch) {
    // Interned: Python's cache of attributes keeps names alive that it has seen.
    static PyObject *const dicts_name = PyUnicode_InternFromString("dicts"), *const classes_name =
                                                                                 PyUnicode_InternFromString("classes");
    const Own d(checked(PyObject_GetAttr(watch, dicts_name))), c(checked(PyObject_GetAttr(watch, classes_name)));
    dict_list_ = d.get();
    class_list_ = c.get();
    static PyObject* const any = PyUnicode_InternFromString("__class__");
    dicts.clear();
    classes.clear();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dict_list_); ++i) {
      PyObject* dict = PyTuple_GET_ITEM(PyList_GET_ITEM(dict_list_, i), 0);
      settle(dict);
      dicts.emplace_back(dict, version_of(dict));
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(class_list_); ++i) {
      auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(PyList_GET_ITEM(class_list_, i), 0));
      _PyType_Lookup(type, any);  // gives it a version
      classes.emplace_back(type, version_of(type));
    }
  }

  // The next check looks them through.
  void forget() {
    for (auto& [dict, version] : dicts) version = 0;
    for (auto& [type, version] : classes) version = 0;
  }
};

}  // namespace strata::py
