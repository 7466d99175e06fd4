// What a compiled function is to a call (strata/_bytecode): guards, then what they guard, without Python between.
#include "bind/dispatch/graph.h"
#include "bind/dispatch/guards.h"
#include "core/factory_device.h"
#include "grad/variable.h"

namespace strata::py {

namespace {

// What the entries' first call is: guards, then what they guard. `entries` is a list of pairs, the newest first;
// `stops` the type of what is returned where a function stopped before its end.
struct Dispatcher {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject *entries, *owner, *stops, *dict, *weakrefs;
  Py_ssize_t count;  // of arguments, that is of positional parameters; -1: calls are Python's
};

PyObject* slowly(Dispatcher& own, PyObject* const* args, size_t flags, PyObject* names) {
  static PyObject* const name = PyUnicode_InternFromString("_call");
  Own method(PyObject_GetAttr(reinterpret_cast<PyObject*>(&own), name));
  return method ? PyObject_Vectorcall(method.get(), args, size_t(PyVectorcall_NARGS(flags)), names) : nullptr;
}

PyObject* dispatch(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  const Py_ssize_t given = PyVectorcall_NARGS(flags);
  const bool bound = own.owner != nullptr;
  if (names || own.count != given + bound || dispatch_tls.include.has(Key::Tracer))
    return slowly(own, args, flags, names);
  return guarded([&]() -> PyObject* {
    constexpr Py_ssize_t kFew = 24;
    PyObject* few[kFew];
    std::vector<PyObject*> many;
    PyObject* const* all = args;
    if (bound) {
      PyObject** place = few;
      if (given + 1 > kFew) {
        many.resize(size_t(given) + 1);
        place = many.data();
      }
      place[0] = own.owner;
      std::copy(args, args + given, place + 1);
      all = place;
    }
    Own entries(Py_NewRef(own.entries));  // a guard may run Python, which may forget them
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); ++i) {
      Own pair(Py_NewRef(PyList_GET_ITEM(entries.get(), i)));
      PyObject* guards = PyTuple_GET_ITEM(pair.get(), 0);
      const auto [hold, instance] = ask_guards(guards, all, own.count);
      if (!hold) continue;
      PyObject* run = have_open_sizes(guards) ? instance : PyTuple_GET_ITEM(pair.get(), 1);
      if (!run || run == Py_None) break;  // sizes that were not there yet, or a function that runs as it is
      Own kept(Py_NewRef(run));
      PyObject* result = PyObject_Vectorcall(run, all, size_t(own.count), nullptr);
      if (!result || reinterpret_cast<PyObject*>(Py_TYPE(result)) != own.stops) return result;
      Own jump(result);
      static PyObject* const name = PyUnicode_InternFromString("_resume");
      return PyObject_CallMethodOneArg(self, name, jump.get());
    }
    return slowly(own, args, flags, names);
  });
}

// _set(entries, count, owner or None, stops)
PyObject* set_dispatcher(PyObject* self, PyObject* args) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  PyObject *entries, *owner, *stops;
  Py_ssize_t count;
  if (!PyArg_ParseTuple(args, "O!nOO", &PyList_Type, &entries, &count, &owner, &stops)) return nullptr;
  own.count = count;
  Py_XSETREF(own.entries, Py_NewRef(entries));
  Py_XSETREF(own.owner, owner == Py_None ? nullptr : Py_NewRef(owner));
  Py_XSETREF(own.stops, Py_NewRef(stops));
  Py_RETURN_NONE;
}

PyObject* new_dispatcher(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  own.call = dispatch;
  own.count = -1;
  return self;
}

int traverse_dispatcher(PyObject* self, visitproc visit, void* arg) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  for (PyObject* o : {own.entries, own.owner, own.stops, own.dict}) Py_VISIT(o);
  return 0;
}

int clear_dispatcher(PyObject* self) {
  auto& own = *reinterpret_cast<Dispatcher*>(self);
  own.count = -1;
  for (PyObject** o : {&own.entries, &own.owner, &own.stops, &own.dict}) Py_CLEAR(*o);
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
