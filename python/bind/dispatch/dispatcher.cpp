// What a compiled function is to a call (strata/_bytecode): guards, then what they guard, without Python between.
#include "bind/dispatch/graph.h"
#include "bind/dispatch/guards.h"
#include "core/factory_device.h"
#include "grad/engine/variable.h"

namespace strata::py {

namespace {

// What the entries' first call is: guards, then what they guard. `entries` is a list, the newest first, of (guards,
// what is called with the arguments, what is called instead with the values that the guards hand on, or None); `stops`
// the type of what is returned where a function stopped before its end. Without a `function` calls are Python's.
struct Dispatcher {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject *entries, *owner, *stops, *function, *code, *names, *dict, *weakrefs;
};

// The values of a call's parameters, in the order of co_varnames: positional ones, keyword-only ones, *args, **kwargs.
class Bound {
 public:
  Bound(const Dispatcher& own, PyObject* const* args, Py_ssize_t given, PyObject* names)
      : own_(own), code_(*reinterpret_cast<PyCodeObject*>(own.code)) {
    const Py_ssize_t plain = code_.co_argcount + code_.co_kwonlyargcount;
    const bool rest = code_.co_flags & CO_VARARGS, more = code_.co_flags & CO_VARKEYWORDS;
    count_ = plain + rest + more;
    const Py_ssize_t first = own.owner != nullptr;
    if (!names && !first && plain == given && count_ == given) {
      values_ = args;
      return;
    }
    if (given + first > code_.co_argcount && !rest) return;
    PyObject** place = few_;
    if (count_ > kFew) {
      many_.resize(size_t(count_));
      place = many_.data();
    }
    std::fill_n(place, count_, nullptr);
    const Py_ssize_t taken = std::min<Py_ssize_t>(given, code_.co_argcount - first);
    if (taken < 0) return;
    if (first) place[0] = own.owner;
    std::copy(args, args + taken, place + first);
    if (more) place[count_ - 1] = hold(PyDict_New());
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
      PyObject* name = PyTuple_GET_ITEM(names, i);
      const Py_ssize_t at = parameter(name, plain);
      if (at < 0 ? !more : place[at] != nullptr) return;
      if (at >= 0) {
        place[at] = args[given + i];
      } else {
        checked(PyDict_SetItem(place[count_ - 1], name, args[given + i]));
      }
    }
    if (!defaults(place, plain)) return;
    if (rest) {
      PyObject* extra = place[plain] = hold(PyTuple_New(given - taken));
      for (Py_ssize_t i = taken; i < given; ++i) PyTuple_SET_ITEM(extra, i - taken, Py_NewRef(args[i]));
    }
    values_ = place;
  }
  Bound(const Bound&) = delete;

  // null where the arguments do not fit: Python says how.
  PyObject* const* values() const { return values_; }
  Py_ssize_t count() const { return count_; }

 private:
  static constexpr Py_ssize_t kFew = 24;

  PyObject* hold(PyObject* made) {
    held_.emplace_back(checked(made));
    return made;
  }

  Py_ssize_t parameter(PyObject* name, Py_ssize_t plain) const {
    for (Py_ssize_t i = code_.co_posonlyargcount; i < plain; ++i)
      if (PyTuple_GET_ITEM(own_.names, i) == name) return i;
    for (Py_ssize_t i = code_.co_posonlyargcount; i < plain; ++i)
      if (PyUnicode_Compare(PyTuple_GET_ITEM(own_.names, i), name) == 0) return i;
    return -1;
  }

  bool defaults(PyObject** place, Py_ssize_t plain) {
    PyObject* values = PyFunction_GetDefaults(own_.function);
    const Py_ssize_t from = code_.co_argcount - (values ? PyTuple_GET_SIZE(values) : 0);
    if (values) hold(Py_NewRef(values));  // a guard may run Python, which may give the function others
    for (Py_ssize_t i = 0; i < code_.co_argcount; ++i) {
      if (place[i]) continue;
      if (i < from) return false;
      place[i] = PyTuple_GET_ITEM(values, i - from);
    }
    PyObject* named = PyFunction_GetKwDefaults(own_.function);
    for (Py_ssize_t i = code_.co_argcount; i < plain; ++i) {
      if (place[i]) continue;
      PyObject* found = named ? PyDict_GetItemWithError(named, PyTuple_GET_ITEM(own_.names, i)) : nullptr;
      if (!found) return false;
      place[i] = hold(Py_NewRef(found));
    }
    return true;
  }

  const Dispatcher& own_;
  const PyCodeObject& code_;
  PyObject* const* values_ = nullptr;
  Py_ssize_t count_;
  PyObject* few_[kFew];
  std::vector<PyObject*> many_;
  std::vector<Own> held_;
};

PyObject* slowly(Dispatcher& own, PyObject* const* args, size_t flags, PyObject* names) {
  static PyObject* const name = PyUnicode_InternFromString("_call");
  Own method(PyObject_GetAttr(reinterpret_cast<PyObject*>(&own), name));
  return method ? PyObject_Vectorcall(method.get(), args, size_t(PyVectorcall_NARGS(flags)), names) : nullptr;
}

PyObject* dispatch(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  if (!own.function || PyFunction_GET_CODE(own.function) != own.code || dispatch_tls.include.has(Key::Tracer))
    return slowly(own, args, flags, names);
  return guarded([&]() -> PyObject* {
    const Bound bound(own, args, PyVectorcall_NARGS(flags), names);
    PyObject* const* all = bound.values();
    if (!all) return slowly(own, args, flags, names);
    Own entries(Py_NewRef(own.entries));  // a guard may run Python, which may forget them
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); ++i) {
      Own entry(Py_NewRef(PyList_GET_ITEM(entries.get(), i)));
      PyObject* guards = PyTuple_GET_ITEM(entry.get(), 0);
      const GuardsAnswer answer = ask_guards(guards, all, bound.count());
      if (!answer.hold) continue;
      if (PyObject* direct = PyTuple_GET_ITEM(entry.get(), 2); direct != Py_None)
        return PyObject_Vectorcall(direct, answer.handed.data(), answer.handed.size(), nullptr);
      PyObject* run = have_open_sizes(guards) ? answer.run : PyTuple_GET_ITEM(entry.get(), 1);
      if (!run || run == Py_None) break;  // sizes that were not there yet, or a function that runs as it is
      Own kept(Py_NewRef(run));
      PyObject* result = PyObject_Vectorcall(run, all, size_t(bound.count()), nullptr);
      if (!result || reinterpret_cast<PyObject*>(Py_TYPE(result)) != own.stops) return result;
      Own jump(result);
      static PyObject* const name = PyUnicode_InternFromString("_resume");
      return PyObject_CallMethodOneArg(self, name, jump.get());
    }
    return slowly(own, args, flags, names);
  });
}

// _set(entries, function or None, owner or None, stops)
PyObject* set_dispatcher(PyObject* self, PyObject* args) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  PyObject *entries, *function, *owner, *stops;
  if (!PyArg_ParseTuple(args, "O!OOO", &PyList_Type, &entries, &function, &owner, &stops)) return nullptr;
  Own code, names;
  if (function != Py_None) {
    if (!PyFunction_Check(function))
      return PyErr_Format(PyExc_TypeError, "_set: expected a function, got %R", function);
    code = Own(Py_NewRef(PyFunction_GET_CODE(function)));
    names = Own(PyObject_GetAttrString(code.get(), "co_varnames"));
    if (!names) return nullptr;
  }
  Py_XSETREF(own.function, nullptr);
  Py_XSETREF(own.code, code.release());
  Py_XSETREF(own.names, names.release());
  Py_XSETREF(own.entries, Py_NewRef(entries));
  Py_XSETREF(own.owner, owner == Py_None ? nullptr : Py_NewRef(owner));
  Py_XSETREF(own.stops, Py_NewRef(stops));
  own.function = function == Py_None ? nullptr : Py_NewRef(function);
  Py_RETURN_NONE;
}

PyObject* new_dispatcher(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  own.call = dispatch;
  return self;
}

int traverse_dispatcher(PyObject* self, visitproc visit, void* arg) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  for (PyObject* o : {own.entries, own.owner, own.stops, own.function, own.code, own.names, own.dict}) Py_VISIT(o);
  return 0;
}

int clear_dispatcher(PyObject* self) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  for (PyObject** o : {&own.function, &own.entries, &own.owner, &own.stops, &own.code, &own.names, &own.dict})
    Py_CLEAR(*o);
  return 0;
}

void dealloc_dispatcher(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  if (own.weakrefs) PyObject_ClearWeakRefs(self);
  clear_dispatcher(self);
  Py_TYPE(self)->tp_free(self);
}

// As a function in a class: its method.
PyObject* bind_method(PyObject* self, PyObject* obj, PyObject*) {
  return obj && obj != Py_None ? PyMethod_New(self, obj) : Py_NewRef(self);
}

PyMethodDef dispatcher_methods[] = {{"_set", set_dispatcher, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef dispatcher_attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                       {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyTypeObject dispatcher_type = {PyVarObject_HEAD_INIT(nullptr, 0) "strata._C._Dispatcher"};

}  // namespace

void init_dispatcher(PyObject* module) {
  dispatcher_type.tp_basicsize = sizeof(Dispatcher);
  dispatcher_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE;
  dispatcher_type.tp_vectorcall_offset = offsetof(Dispatcher, call);
  dispatcher_type.tp_dictoffset = offsetof(Dispatcher, dict);
  dispatcher_type.tp_weaklistoffset = offsetof(Dispatcher, weakrefs);
  dispatcher_type.tp_call = PyVectorcall_Call;
  dispatcher_type.tp_new = new_dispatcher;
  dispatcher_type.tp_dealloc = dealloc_dispatcher;
  dispatcher_type.tp_traverse = traverse_dispatcher;
  dispatcher_type.tp_clear = clear_dispatcher;
  dispatcher_type.tp_methods = dispatcher_methods;
  dispatcher_type.tp_getset = dispatcher_attributes;
  dispatcher_type.tp_descr_get = bind_method;
  add_type(module, "_Dispatcher", dispatcher_type);
}

}  // namespace strata::py
