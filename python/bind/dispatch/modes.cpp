// __torch_function__: collecting the arguments that want to be asked, the order of asking, and the stack of modes.
#include "bind/dispatch/modes.h"
#include "bind/dispatch/mode_stack.h"

#include <unordered_map>

#include "bind/tensor/tensor.h"

namespace strata::py {

namespace {

enum class Overrides : uint8_t { On, NoSubclasses, Off };

struct State {
  static constexpr const char* kClass = "TorchFunctionMode";
  Overrides overrides = Overrides::On;
  bool mode_active = false;
  std::vector<PyObject*> modes;
  void changed() { mode_active = !modes.empty() && overrides != Overrides::Off; }
};
using Modes = ModeStack<State>;
State& state() { return Modes::state(); }

bool has_override(PyObject* o) {
  if (is_tensor(o) && is_plain_tensor(o)) return false;
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type || o == Py_None)
    return false;
  PyObject* hook = _PyType_Lookup(t, name_torch_function);
  return hook && hook != disabled_torch_function;
}

Own types_of(const Overloaded& overloaded) {
  Own types(checked(PyTuple_New(Py_ssize_t(overloaded.args.size()))));
  for (size_t i = 0; i < overloaded.args.size(); ++i) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(overloaded.args[i].get()));
    PyTuple_SET_ITEM(types.get(), Py_ssize_t(i), new_reference(type).release());
  }
  return types;
}

Own ask(PyObject* who, PyObject* func, PyObject* types, PyObject* args, PyObject* kwargs) {
  Own handler(checked(PyObject_GetAttr(who, name_torch_function)));
  Own empty(kwargs ? nullptr : checked(PyDict_New()));
  return call_object(handler.get(),
                     make_tuple(new_reference(func).release(), new_reference(types).release(),
                                new_reference(args).release(), new_reference(kwargs ? kwargs : empty.get()).release())
                         .get());
}

// ---- functions

// _set_torch_function_state(0 on, 1 no subclasses, 2 off) -> the state before
PyObject* set_overrides(PyObject*, PyObject* value) {
  return guarded([&] {
    State& s = state();
    int64_t before = int64_t(s.overrides);
    s.overrides = Overrides(to_Int(value));
    s.changed();
    return wrap(before);
  });
}

PyObject* overrides(PyObject*, PyObject*) { return PyLong_FromLong(long(state().overrides)); }
PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(state().overrides == Overrides::On); }

bool any_override(PyObject* const* args, Py_ssize_t n) {
  if (state().mode_active) return true;
  if (state().overrides != Overrides::On) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (has_override(args[i])) return true;
  return false;
}

PyObject* has_torch_function(PyObject*, PyObject* sequence) {
  return guarded([&] {
    Own items(checked(PySequence_Fast(sequence, "has_torch_function: expected a sequence of arguments")));
    return wrap(any_override(PySequence_Fast_ITEMS(items.get()), PySequence_Fast_GET_SIZE(items.get())));
  });
}
PyObject* has_torch_function_unary(PyObject*, PyObject* o) { return PyBool_FromLong(any_override(&o, 1)); }
PyObject* has_torch_function_variadic(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return PyBool_FromLong(any_override(args, n));
}

// _handle_torch_function(func, relevant, args, kwargs)
PyObject* handle(PyObject*, PyObject* all) {
  PyObject *func, *relevant, *args, *kwargs;
  if (!PyArg_ParseTuple(all, "OOO!O!", &func, &relevant, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
  return guarded([&]() -> PyObject* {
    Own items(checked(PySequence_Fast(relevant, "handle_torch_function: expected a sequence of arguments")));
    Overloaded overloaded;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      overloaded.add(PySequence_Fast_GET_ITEM(items.get(), i));
    PyObject* result = ask_torch_function(func, overloaded, args, kwargs);
    if (!result && !PyErr_Occurred())
      raise(PyExc_TypeError, "handle_torch_function: no argument has __torch_function__");
    return result;
  });
}

PyObject* overloaded_args(PyObject*, PyObject* sequence) {
  return guarded([&] {
    Own items(checked(PySequence_Fast(sequence, "expected a sequence of arguments")));
    Overloaded overloaded;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      overloaded.add(PySequence_Fast_GET_ITEM(items.get(), i));
    Own list(checked(PyList_New(0)));
    for (const Own& o : overloaded.args) checked(PyList_Append(list.get(), o.get()));
    return list.release();
  });
}

// _disabled_torch_function_impl(func, types, args=(), kwargs=None): what a class sets as __torch_function__ that wants
// its calls to run as those of plain tensors.
PyObject* disabled_impl(PyObject*, PyObject* all) {
  PyObject *func, *types, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_UnpackTuple(all, "_disabled_torch_function_impl", 2, 4, &func, &types, &args, &kwargs)) return nullptr;
  return guarded([&] {
    State& s = state();
    struct Restore {
      State& s;
      Overrides before;
      ~Restore() {
        s.overrides = before;
        s.changed();
      }
    } restore{s, s.overrides};
    if (s.overrides == Overrides::On) s.overrides = Overrides::NoSubclasses;
    s.changed();
    Own no_args = make_tuple();
    Own positional(checked(PySequence_Tuple(args ? args : no_args.get())));
    return call_object(func, positional.get(), kwargs && kwargs != Py_None ? kwargs : nullptr).release();
  });
}

PyMethodDef functions[] = {
    {"_push_torch_function_mode", Modes::push, METH_O, nullptr},
    {"_pop_torch_function_mode", Modes::pop, METH_NOARGS, nullptr},
    {"_torch_function_modes", Modes::list, METH_NOARGS, nullptr},
    {"_set_torch_function_state", set_overrides, METH_O, nullptr},
    {"_torch_function_state", overrides, METH_NOARGS, nullptr},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_has_torch_function", has_torch_function, METH_O, nullptr},
    {"_has_torch_function_unary", has_torch_function_unary, METH_O, nullptr},
    {"_has_torch_function_variadic",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(has_torch_function_variadic)), METH_FASTCALL, nullptr},
    {"_handle_torch_function", handle, METH_VARARGS, nullptr},
    {"_overloaded_args", overloaded_args, METH_O, nullptr},
    {"_disabled_torch_function_impl", disabled_impl, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- contexts that switch overrides off

struct Switch {
  PyObject_HEAD int before;
};

template <Overrides Wanted>
PyObject* enter(PyObject* o, PyObject*) {
  State& s = state();
  reinterpret_cast<Switch*>(o)->before = int(s.overrides);
  if (Wanted > s.overrides) s.overrides = Wanted;
  s.changed();
  return new_reference(o).release();
}
PyObject* leave(PyObject* o, PyObject*) {
  state().overrides = Overrides(reinterpret_cast<Switch*>(o)->before);
  state().changed();
  Py_RETURN_NONE;
}

template <Overrides Wanted>
void add_switch(PyObject* module, const char* name) {
  static PyMethodDef methods[] = {{"__enter__", enter<Wanted>, METH_NOARGS, nullptr},
                                  {"__exit__", leave, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  PyType_Slot slots[] = {
      {Py_tp_methods, methods}, {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)}, {0, nullptr}};
  PyType_Spec spec = {name, int(sizeof(Switch)), 0, Py_TPFLAGS_DEFAULT, slots};
  add_type(module, &spec);
}

}  // namespace

bool torch_function_mode_active() { return state().mode_active; }
bool torch_function_enabled() { return state().overrides == Overrides::On; }

void Overloaded::add(PyObject* o) {
  if (!has_override(o)) return;
  for (const Own& known : args)
    if (Py_TYPE(known.get()) == Py_TYPE(o)) return;
  for (size_t i = 0; i < args.size(); ++i)
    if (PyType_IsSubtype(Py_TYPE(o), Py_TYPE(args[i].get()))) {
      args.insert(args.begin() + long(i), new_reference(o));
      return;
    }
  args.push_back(new_reference(o));
}

void Overloaded::add_nested(PyObject* o, int depth) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return add(o);
  if (depth == kOverrideDepth) return;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) add_nested(PySequence_Fast_GET_ITEM(o, i), depth + 1);
}

PyObject* public_function(const char* name, bool method) {
  static auto* cache = new std::unordered_map<std::string, PyObject*>;
  PyObject*& found = (*cache)[str_cat(method ? "Tensor." : "", name)];
  if (found) return found;
  if (method) return found = checked(PyObject_GetAttrString(tensor_class, name));
  Own strata(checked(PyImport_ImportModule("strata")));
  Own function = find_attr(strata.get(), name);
  if (!function) function = get_attr(import_attr("strata._C", "_functions").get(), name);
  return found = function.release();
}

PyObject* ask_torch_function(PyObject* func, const Overloaded& overloaded, PyObject* args, PyObject* kwargs) {
  State& s = state();
  bool subclasses = s.overrides == Overrides::On && !overloaded.args.empty();
  if (!s.mode_active && !subclasses) return nullptr;
  Own types = types_of(overloaded);
  if (s.mode_active) {
    Modes::Current mode;
    Own result = ask(mode.get(), func, types.get(), args, kwargs);
    if (result.get() != Py_NotImplemented) return result.release();
    if (!subclasses)
      raise(PyExc_TypeError, "no implementation found for '" + text_of(func) + "': the mode " + type_name(mode.get()) +
                                 " returned NotImplemented");
  }
  for (const Own& o : overloaded.args) {
    Own result = ask(o.get(), func, types.get(), args, kwargs);
    if (result.get() != Py_NotImplemented) return result.release();
  }
  std::string names;
  for (const Own& o : overloaded.args) names += (names.empty() ? "" : ", ") + type_name(o.get());
  raise(PyExc_TypeError, "no implementation found for '" + text_of(func) +
                             "' on types that implement __torch_function__: [" + names +
                             "]; all of their handlers returned NotImplemented");
}

PyObject* torch_function(const Overloads& overloads, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                         PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    State& s = state();
    if (s.overrides == Overrides::Off) return nullptr;
    Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    Overloaded overloaded;
    if (self) overloaded.add(self);
    for (Py_ssize_t i = 0; i < nargs + named; ++i) overloaded.add_nested(args[i]);
    if (!s.mode_active && (overloaded.args.empty() || s.overrides != Overrides::On)) return nullptr;
    Py_ssize_t first = self ? 1 : 0;
    Own tuple(checked(PyTuple_New(nargs + first)));
    if (self) PyTuple_SET_ITEM(tuple.get(), 0, new_reference(self).release());
    for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(tuple.get(), i + first, new_reference(args[i]).release());
    Own kwargs(checked(PyDict_New()));
    for (Py_ssize_t i = 0; i < named; ++i)
      checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]));
    return ask_torch_function(public_function(overloads.name, self != nullptr), overloaded, tuple.get(), kwargs.get());
  });
}

void init_modes(PyObject* module) {
  add_functions(module, functions);
  disabled_torch_function = get_attr(module, "_disabled_torch_function_impl").release();
  add_switch<Overrides::NoSubclasses>(module, "strata._C.DisableTorchFunctionSubclass");
  add_switch<Overrides::Off>(module, "strata._C.DisableTorchFunction");
  init_dispatch_modes(module);
}

}  // namespace strata::py
