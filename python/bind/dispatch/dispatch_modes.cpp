// __torch_dispatch__. A mode is asked first of all (Key::Python is the outermost key) and sees operators as they were
// called. A tensor subclass is asked in the place of a device: after autocast, autograd and bookkeeping, which treat
// its tensors as they treat others.
#include "bind/autograd/anomaly.h"
#include "bind/dispatch/mode_stack.h"
#include "bind/dispatch/modes.h"
#include "bind/dispatch/stack.h"
#include "bind/tensor/tensor.h"
#include "dispatch/boxed.h"
#include "grad/engine/variable.h"

namespace strata::py {

namespace {

struct State {
  static constexpr const char* kClass = "TorchDispatchMode";
  std::vector<PyObject*> modes;
  bool subclasses = true;
  void changed() { refresh_python_key(); }
};
using Modes = ModeStack<State>;
State& state() { return Modes::state(); }

PyObject* name_torch_dispatch = nullptr;
PyObject* disabled_torch_dispatch = nullptr;

// Tensors whose class has __torch_dispatch__, subclasses before their bases, one per class.
std::vector<Own> overloaded_tensors(const Stack& stack) {
  std::vector<Own> found;
  auto add = [&](const Tensor& t) {
    if (!t.defined() || !t.keys().has(Key::Python)) return;
    Own o(checked(wrap(t)));
    if (!has_torch_dispatch(Py_TYPE(o.get()))) return;
    for (const Own& known : found)
      if (Py_TYPE(known.get()) == Py_TYPE(o.get())) return;
    size_t at = 0;
    while (at < found.size() && !PyType_IsSubtype(Py_TYPE(o.get()), Py_TYPE(found[at].get()))) ++at;
    found.insert(found.begin() + long(at), std::move(o));
  };
  for (const IValue& v : stack) {
    if (v.is_tensor()) add(v.get<Tensor>());
    if (v.is_tensors())
      for (const Tensor& t : v.get<IValue::TensorVec>()) add(t);
  }
  return found;
}

bool has_python_tensor(const Stack& stack) {
  for (const IValue& v : stack) {
    if (v.is_tensor() && v.get<Tensor>().defined() && v.get<Tensor>().keys().has(Key::Python)) return true;
    if (v.is_tensors())
      for (const Tensor& t : v.get<IValue::TensorVec>())
        if (t.defined() && t.keys().has(Key::Python)) return true;
  }
  return false;
}

Own types_of(const std::vector<Own>& tensors) {
  Own types(checked(PyTuple_New(Py_ssize_t(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(types.get(), Py_ssize_t(i),
                     new_reference(reinterpret_cast<PyObject*>(Py_TYPE(tensors[i].get()))).release());
  return types;
}

// Whether the handler took the call; the stack then holds the results.
bool ask(PyObject* who, Operator& called, const std::vector<Own>& tensors, Stack& stack) {
  Operator& op = beside_numbers(called, false);
  Own handler(checked(PyObject_GetAttr(who, name_torch_dispatch)));
  PythonArgs args = stack_to_args(op, stack);
  Own result =
      call_object(handler.get(), make_tuple(new_reference(operator_object(op)).release(), types_of(tensors).release(),
                                            args.args.release(), args.kwargs.release())
                                     .get());
  if (result.get() == Py_NotImplemented) return false;
  Stack results;
  results_from_python(op, result.get(), stack, "__torch_dispatch__ of " + type_name(who), results);
  stack.swap(results);
  return true;
}

// Serves Key::Python.
void python_key(Operator& op, Dispatch d, Stack& stack) {
  if (!state().modes.empty()) {
    Modes::Current mode;
    {
      HoldLock lock;
      if (ask(mode.get(), op, overloaded_tensors(stack), stack)) return;
    }
    call_boxed(op, stack);  // with this mode off its stack
    return;
  }
  Dispatch below = d.below(Key::Python);
  if (state().subclasses && has_python_tensor(stack))
    redispatch_boxed(op, {below.keys - KeySet(Key::Meta), kForeignDevice}, stack);
  else if (watches_nan())
    run_watched(op, below, stack);
  else
    redispatch_boxed(op, below, stack);
}

// Serves subclasses where a device's kernel would be.
void foreign_kernel(Operator& op, Dispatch, Stack& stack) {
  HoldLock lock;
  std::vector<Own> tensors = overloaded_tensors(stack);
  STRATA_CHECK(!tensors.empty(), op.name,
               ": an argument was a tensor subclass with __torch_dispatch__ whose Python object is "
               "gone; keep the object, or detach() it before it is saved");
  for (const Own& o : tensors)
    if (ask(o.get(), op, tensors, stack)) return;
  std::string names;
  for (const Own& o : tensors) names += (names.empty() ? "" : ", ") + type_name(o.get());
  raise(PyExc_TypeError,
        str_cat("no implementation found for ", op.name, " on types that implement __torch_dispatch__: [", names,
                "]; all of their handlers returned NotImplemented"));
}

// ---- functions

// _set_torch_dispatch_enabled(bool) -> what it was
PyObject* set_subclasses(PyObject*, PyObject* value) {
  return guarded([&] {
    bool before = state().subclasses;
    state().subclasses = to_Bool(value);
    return wrap(before);
  });
}

// _disabled_torch_dispatch_impl: what a class sets as __torch_dispatch__ that wants none.
PyObject* disabled_impl(PyObject*, PyObject* all) {
  PyObject *func, *types, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_UnpackTuple(all, "_disabled_torch_dispatch_impl", 2, 4, &func, &types, &args, &kwargs)) return nullptr;
  return guarded([&] {
    struct Restore {
      bool before = state().subclasses;
      ~Restore() { state().subclasses = before; }
    } restore;
    state().subclasses = false;
    Own no_args = make_tuple();
    Own positional(checked(PySequence_Tuple(args ? args : no_args.get())));
    return call_object(func, positional.get(), kwargs && kwargs != Py_None ? kwargs : nullptr).release();
  });
}

// _from_the_top(func, args): func(*args) under all keys, though an operator asks for it from below some of them: what a
// handler computes with tensors of its own is then recorded, where these need gradients.
PyObject* from_the_top(PyObject*, PyObject* all) {
  PyObject *func, *args;
  if (!PyArg_UnpackTuple(all, "_from_the_top", 2, 2, &func, &args)) return nullptr;
  return guarded([&] {
    struct Top : TlsGuard {
      Top() {
        dispatch_tls.include = dispatch_tls.exclude = KeySet();
        refresh_tls_mask();
      }
    } top;
    return call_object(func, args).release();
  });
}

// _make_wrapper_subclass(cls, size, *, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=None,
// device=None, pin_memory=False, requires_grad=False): a tensor with a shape and no memory; its class holds the data.
PyObject* make_wrapper(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* v[11] = {};
    read_args("_make_wrapper_subclass",
              {"cls", "size", "strides", "storage_offset", "memory_format", "dtype", "layout", "device", "pin_memory",
               "requires_grad", "dispatch_sizes_strides_policy"},
              4, v, args, nargs, kwnames, 2);
    if (!PyType_Check(v[0]) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(v[0]), tensor_base_type))
      raise(PyExc_TypeError, "_make_wrapper_subclass: cls must be a subclass of strata.Tensor, got " + text_of(v[0]));
    auto* type = reinterpret_cast<PyTypeObject*>(v[0]);
    if (!has_torch_dispatch(type))
      raise(PyExc_TypeError,
            "_make_wrapper_subclass: the class " + std::string(type->tp_name) + " must define __torch_dispatch__");
    if (v[10] && v[10] != Py_None)
      raise(PyExc_NotImplementedError,
            "_make_wrapper_subclass: dispatch_sizes_strides_policy: sizes of a subclass are those given here; leave it "
            "out");
    auto given = [&](int i) { return v[i] && v[i] != Py_None ? v[i] : nullptr; };
    DType dtype = given(5) ? to_DType(v[5]) : default_dtype();
    Device device = given(7) ? to_Device(v[7]) : Device{0, -1};
    IntListValue sizes = to_IntList(v[1]);
    MemoryFormat format = given(4) ? to_Format(v[4]) : MemoryFormat::Contiguous;
    DimVec strides = given(2) ? to_IntList(v[2]).v : strides_for(sizes, format);
    STRATA_CHECK(strides.size() == sizes.v.size(), "_make_wrapper_subclass: expected as many strides as sizes, got ",
                 strides.size(), " and ", sizes.v.size());
    Tensor t = make_tensor_strided(sizes, strides, dtype, device, true);
    if (given(3)) t.impl()->offset_ = to_Int(v[3]);
    note_subclass(t, type);
    if (given(9) && to_Bool(v[9])) set_requires_grad(t, true);
    return wrap_as(std::move(t), type);
  });
}

PyMethodDef functions[] = {
    {"_push_dispatch_mode", Modes::push, METH_O, nullptr},
    {"_pop_dispatch_mode", Modes::pop, METH_NOARGS, nullptr},
    {"_dispatch_modes", Modes::list, METH_NOARGS, nullptr},
    {"_set_torch_dispatch_enabled", set_subclasses, METH_O, nullptr},
    {"_disabled_torch_dispatch_impl", disabled_impl, METH_VARARGS, nullptr},
    {"_from_the_top", from_the_top, METH_VARARGS, nullptr},
    {"_make_wrapper_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_wrapper)),
     METH_FASTCALL | METH_KEYWORDS, "A tensor of a class with __torch_dispatch__ that has a shape and no memory."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int dispatch_mode_depth() { return int(state().modes.size()); }

bool has_torch_dispatch(PyTypeObject* type) {
  PyObject* handler = _PyType_Lookup(type, name_torch_dispatch);
  return handler && handler != disabled_torch_dispatch;
}

void note_subclass(const Tensor& t, PyTypeObject* type) {
  if (has_torch_dispatch(type)) t.impl()->keys_ = t.impl()->keys_ | KeySet(Key::Python);
}

void init_dispatch_modes(PyObject* module) {
  name_torch_dispatch = checked(PyUnicode_InternFromString("__torch_dispatch__"));
  add_functions(module, functions);
  disabled_torch_dispatch = get_attr(module, "_disabled_torch_dispatch_impl").release();
  Own make = get_attr(module, "_make_wrapper_subclass");
  Own held(checked(PyStaticMethod_New(make.get())));
  checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_base_type), "_make_wrapper_subclass", held.get()));
  static const BoxedKernel modes_first{python_key, "python/bind/dispatch/dispatch_modes.cpp: modes and subclasses"};
  static const BoxedKernel subclasses{foreign_kernel,
                                      "python/bind/dispatch/dispatch_modes.cpp: __torch_dispatch__ of subclasses"};
  OperatorTable::instance().fallback(Key::Python, &modes_first);
  OperatorTable::instance().foreign(&subclasses);
}

}  // namespace strata::py
