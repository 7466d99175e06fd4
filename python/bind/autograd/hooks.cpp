// Hooks of tensors, their handles, and the hooks that pack what backward needs.
#include "bind/args/convert.h"
#include "bind/autograd/node.h"
#include "bind/tensor/tensor.h"
#include "bind/types/dealloc.h"
#include "dispatch/tls.h"
#include "grad/engine/saved_tensor.h"
#include "grad/engine/variable.h"

namespace strata::py {

std::shared_ptr<Hook> make_hook(PyObject* fn) {
  if (!PyCallable_Check(fn)) raise(PyExc_TypeError, "hook: expected a callable, got " + type_name(fn));
  return std::make_shared<Hook>(Hook{share(fn), next_hook_id()});
}

namespace {

// ---- handles

struct Handle {
  PyObject_HEAD std::shared_ptr<Hook> hook;
  Own target;  // a weak reference; null after removal
  void (*erase)(PyObject* target, int64_t id);
};
PyTypeObject* handle_type = nullptr;

Handle* handle_of(PyObject* o) { return reinterpret_cast<Handle*>(o); }

// The note of a hook in a tensor's `_backward_hooks`.
void forget(PyObject* target, int64_t id) {
  if (!is_tensor(target)) return;
  PyObject* notes = reinterpret_cast<PyTensor*>(target)->hooks;
  if (!notes || !PyDict_Check(notes)) return;
  const Own key(checked(PyLong_FromLongLong(id)));
  if (PyDict_DelItem(notes, key.get()) < 0) PyErr_Clear();  // noted elsewhere
}

PyObject* handle_remove(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Handle* self = handle_of(o);
    if (self->target) {
      PyObject* target = PyWeakref_GetObject(self->target.get());
      if (target && target != Py_None) {
        Own keep = new_reference(target);
        self->erase(target, self->hook->id);
        forget(target, self->hook->id);
      }
      self->target = Own();
    }
    self->hook->fn.reset();
    Py_RETURN_NONE;
  });
}

PyObject* handle_enter(PyObject* o, PyObject*) { return new_reference(o).release(); }
PyObject* handle_exit(PyObject* o, PyObject*) { return handle_remove(o, nullptr); }
PyObject* handle_id(PyObject* o, void*) { return PyLong_FromLongLong(handle_of(o)->hook->id); }

PyMethodDef handle_methods[] = {{"remove", handle_remove, METH_NOARGS, "Takes the hook away."},
                                {"__enter__", handle_enter, METH_NOARGS, nullptr},
                                {"__exit__", handle_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef handle_getset[] = {{"id", handle_id, nullptr, "Number of the hook.", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- tensor hooks

const Tensor& tensor_arg(PyObject* o, const char* function) {
  if (!is_tensor(o)) raise(PyExc_TypeError, std::string(function) + ": expected Tensor, got " + type_name(o));
  return tensor_of(o);
}

void erase_tensor_hook(PyObject* target, int64_t id) { remove_tensor_hook(tensor_of(target), id); }

// _register_hook(tensor, fn)
PyObject* register_tensor(PyObject*, PyObject* args) {
  return guarded([&] {
    auto [target, fn] = two(args, "register_hook");
    const Tensor& t = tensor_arg(target, "register_hook");
    std::shared_ptr<Hook> hook = make_hook(fn);
    hook->id = register_tensor_hook(t, [hook](const Tensor& grad) -> Tensor {
      HoldLock lock;
      SharedObject fn = hook->fn;
      if (!fn) return {};
      Own result = call_object(fn.get(), make_tuple(wrap(grad)).get());
      if (result.get() == Py_None) return {};
      if (!is_tensor(result.get()))
        raise(PyExc_TypeError,
              "hook '" + callable_source(fn.get()) + "': expected Tensor or None, got " + type_name(result.get()));
      refuse_sparse(result.get(), "hook");
      return tensor_of(result.get());
    });
    return make_hook_handle(hook, target, erase_tensor_hook);
  });
}

// _register_post_accumulate_grad_hook(tensor, fn)
PyObject* register_accumulate(PyObject*, PyObject* args) {
  return guarded([&] {
    auto [target, fn] = two(args, "register_post_accumulate_grad_hook");
    const Tensor& t = tensor_arg(target, "register_post_accumulate_grad_hook");
    std::shared_ptr<Hook> hook = make_hook(fn);
    hook->id = register_accumulate_hook(t, [hook](const Tensor& variable) {
      HoldLock lock;
      SharedObject fn = hook->fn;
      if (!fn) return;
      Own given(checked(wrap(variable))), args(checked(PyTuple_Pack(1, given.get())));
      Own result = call_object(fn.get(), args.get());
      if (result.get() == Py_None || result.get() == given.get()) return;
      if (is_tensor(result.get())) raise(PyExc_RuntimeError, "Tensor post accumulate grad hooks should return None.");
      raise(PyExc_TypeError,
            "register_post_accumulate_grad_hook: expected a hook that returns None, but it returned '" +
                type_name(result.get()) + "'");
    });
    return make_hook_handle(hook, target, erase_tensor_hook);
  });
}

PyObject* retain(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    retain_grad(tensor_arg(o, "retain_grad"));
    Py_RETURN_NONE;
  });
}

// ---- saved tensors

class PySavedHooks final : public SavedHooks {
 public:
  PySavedHooks(PyObject* pack, PyObject* unpack) : pack_(share(pack)), unpack_(share(unpack)) {}
  std::unique_ptr<Packed> pack(const Tensor& t) override {
    HoldLock lock;
    Own packed = call_object(pack_.get(), make_tuple(wrap(t)).get());
    return std::make_unique<PyPacked>(share(packed.get()), unpack_);
  }

 private:
  struct PyPacked final : Packed {
    PyPacked(SharedObject v, SharedObject f) : value(std::move(v)), unpack_fn(std::move(f)) {}
    Tensor unpack() override {
      HoldLock lock;
      Own result = call_object(unpack_fn.get(), make_tuple(new_reference(value.get()).release()).get());
      if (!is_tensor(result.get()))
        raise(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type " +
                                   type_name(result.get()));
      return tensor_of(result.get());
    }
    SharedObject value, unpack_fn;
  };
  SharedObject pack_, unpack_;
};

thread_local int saved_hooks_depth = 0;
std::optional<std::string>& disabled_text() {
  static thread_local std::optional<std::string> text;
  return text;
}

// _push_saved_tensors_hooks(pack, unpack)
PyObject* push_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    auto [pack, unpack] = two(args, "saved_tensors_hooks");
    push_saved_hooks(make_saved_hooks(pack, unpack));
    ++saved_hooks_depth;
    Py_RETURN_NONE;
  });
}

PyObject* pop_hooks(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    STRATA_CHECK(saved_hooks_depth > 0, "saved_tensors_hooks: exit without enter");
    --saved_hooks_depth;
    pop_saved_hooks();
    Py_RETURN_NONE;
  });
}

// _set_saved_tensors_hooks_error(text or None) -> what was set
PyObject* set_hooks_error(PyObject*, PyObject* text) {
  return guarded([&]() -> PyObject* {
    std::optional<std::string> wanted;
    if (text != Py_None) {
      wanted = text_of(text);
      STRATA_CHECK(saved_hooks_depth == 0, *wanted);
    }
    std::optional<std::string>& now = disabled_text();
    PyObject* before = now ? PyUnicode_FromString(now->c_str()) : new_reference(Py_None).release();
    now = wanted;
    set_saved_hooks_error(wanted);
    return before;
  });
}

PyObject* hooks_are_enabled(PyObject*, PyObject*) { return PyBool_FromLong(!disabled_text()); }

PyMethodDef functions[] = {{"_register_hook", register_tensor, METH_VARARGS, nullptr},
                           {"_register_post_accumulate_grad_hook", register_accumulate, METH_VARARGS, nullptr},
                           {"_retain_grad", retain, METH_O, nullptr},
                           {"_push_saved_tensors_hooks", push_hooks, METH_VARARGS, nullptr},
                           {"_pop_saved_tensors_hooks", pop_hooks, METH_NOARGS, nullptr},
                           {"_set_saved_tensors_hooks_error", set_hooks_error, METH_O, nullptr},
                           {"_saved_tensors_hooks_enabled", hooks_are_enabled, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::pair<PyObject*, PyObject*> two(PyObject* args, const char* function) {
  PyObject *a, *b;
  if (!PyArg_UnpackTuple(args, function, 2, 2, &a, &b)) throw PythonError();
  return {a, b};
}

std::shared_ptr<SavedHooks> make_saved_hooks(PyObject* pack, PyObject* unpack) {
  return std::make_shared<PySavedHooks>(pack, unpack);
}

PyObject* make_hook_handle(std::shared_ptr<Hook> hook, PyObject* target, void (*erase)(PyObject*, int64_t)) {
  PyObject* o = checked(handle_type->tp_alloc(handle_type, 0));
  new (&handle_of(o)->hook) std::shared_ptr<Hook>(std::move(hook));
  handle_of(o)->erase = erase;
  new (&handle_of(o)->target) Own(PyWeakref_NewRef(target, nullptr));
  if (!handle_of(o)->target) {
    Py_DECREF(o);
    throw PythonError();
  }
  return o;
}

void init_hooks(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_of<Handle>)},
                         {Py_tp_methods, handle_methods},
                         {Py_tp_getset, handle_getset},
                         {0, nullptr}};
  PyType_Spec spec = {"strata._C.HookHandle", int(sizeof(Handle)), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  handle_type = add_type(module, &spec);
  add_functions(module, functions);
}

}  // namespace strata::py
