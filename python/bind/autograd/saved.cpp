// What autograd nodes show of the tensors that they saved: `node._saved_self`, and `node._raw_saved_self`, which takes
// hooks for that tensor alone.
#include <cstring>
#include <set>
#include <string_view>

#include "bind/autograd/node.h"
#include "bind/tensor/tensor.h"
#include "bind/types/dealloc.h"
#include "grad/engine/saved_tensor.h"

namespace strata::py {

namespace {

struct Raw {
  PyObject_HEAD;
  Own node;
  std::string name;
  size_t index;  // in a list
};
PyTypeObject* raw_type = nullptr;
Raw* raw_of(PyObject* o) { return reinterpret_cast<Raw*>(o); }

struct Search {
  std::string name;
  bool list = false;
  std::vector<SavedTensor*> found;
};

Search saved_under(Node& node, const char* name) {
  Search search{name};
  node.each_saved(&search, [](void* context, const char* of, SavedTensor& saved) {
    Search& s = *static_cast<Search*>(context);
    const size_t n = s.name.size();
    if (std::strncmp(of, s.name.c_str(), n) != 0 || (of[n] && of[n] != '[')) return;
    s.list = of[n] == '[';
    s.found.push_back(&saved);
  });
  return search;
}

PyObject* make_raw(PyObject* node, const char* name, size_t index) {
  PyObject* o = checked(raw_type->tp_alloc(raw_type, 0));
  new (&raw_of(o)->name) std::string(name);
  new (&raw_of(o)->node) Own(new_reference(node));
  raw_of(o)->index = index;
  return o;
}

PyObject* raw_register(PyObject* o, PyObject* args) {
  return guarded([&]() -> PyObject* {
    auto [pack, unpack] = two(args, "register_hooks");
    if (!PyCallable_Check(pack) || !PyCallable_Check(unpack))
      raise(PyExc_TypeError,
            "register_hooks: expected two callables, got " + type_name(pack) + " and " + type_name(unpack));
    const std::vector<SavedTensor*> found = saved_under(node_of(raw_of(o)->node.get()), raw_of(o)->name.c_str()).found;
    STRATA_CHECK(raw_of(o)->index < found.size(), "register_hooks: the node no longer has this tensor");
    found[raw_of(o)->index]->pack(*make_saved_hooks(pack, unpack));
    Py_RETURN_NONE;
  });
}

PyMethodDef raw_methods[] = {{"register_hooks", raw_register, METH_VARARGS,
                              "register_hooks(pack, unpack): pack turns the saved tensor into any object now, unpack "
                              "turns it back for backward."},
                             {nullptr, nullptr, 0, nullptr}};

PyObject* shown(PyObject* o, const char* name, bool raw) {
  Node& node = node_of(o);
  const Ref<Node> keep(&node);
  const Search search = saved_under(node, name);
  const std::vector<SavedTensor*>& found = search.found;
  if (found.empty()) return nullptr;
  auto one = [&](size_t i) { return raw ? make_raw(o, name, i) : checked(wrap(found[i]->unpack(&node))); };
  if (!search.list) return one(0);
  Own tuple(checked(PyTuple_New(Py_ssize_t(found.size()))));
  for (size_t i = 0; i < found.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), one(i));
  return tuple.release();
}

}  // namespace

PyObject* node_attribute(PyObject* o, PyObject* name) {
  PyObject* plain = PyObject_GenericGetAttr(o, name);
  if (plain || !PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_Check(name)) return plain;
  const char* text = PyUnicode_AsUTF8(name);
  const bool raw = text && std::strncmp(text, "_raw_saved_", 11) == 0;
  if (!raw && !(text && std::strncmp(text, "_saved_", 7) == 0)) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* found = guarded([&] { return shown(o, text + (raw ? 11 : 7), raw); });
  if (found || PyErr_Occurred()) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return found;
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

PyObject* node_names(PyObject* o, PyObject*) {
  return guarded([&] {
    static PyObject* const plain =
        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__"));
    Own names(checked(PyObject_CallOneArg(plain, o)));
    std::set<std::string> saved;
    node_of(o).each_saved(&saved, [](void* context, const char* name, SavedTensor&) {
      const std::string_view whole(name);
      static_cast<std::set<std::string>*>(context)->emplace(whole.substr(0, whole.find('[')));
    });
    for (const std::string& name : saved)
      for (const char* prefix : {"_saved_", "_raw_saved_"}) {
        Own text(checked(PyUnicode_FromString((prefix + name).c_str())));
        checked(PyList_Append(names.get(), text.get()));
      }
    return names.release();
  });
}

void init_saved(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_of<Raw>)}, {Py_tp_methods, raw_methods}, {0, nullptr}};
  PyType_Spec spec = {"strata._C.SavedTensor", int(sizeof(Raw)), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  raw_type = add_type(module, &spec);
}

}  // namespace strata::py
