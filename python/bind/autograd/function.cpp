// strata.autograd.Function: the call of forward, the node, and the call of backward. The ctx is a Python node object.
#include "bind/autograd/function.h"

#include "bind/args/convert.h"
#include "bind/tensor/tensor.h"
#include "dispatch/tls.h"
#include "grad/engine/function.h"
#include "grad/engine/library.h"

namespace strata::py {

namespace {

std::string class_name(PyObject* cls) { return text_of(get_attr(cls, "__name__").get()); }

// strata.autograd.Function. An import may let other threads run: they must not wait for it where they hold the
// interpreter.
PyObject* base_function() {
  static PyObject* base = nullptr;
  if (!base) base = import_attr("strata.autograd.function", "Function").release();
  return base;
}

PyObject* backward_of(PyObject* cls) {
  PyObject* const base = base_function();
  Own vjp = get_attr(cls, "vjp"), backward = get_attr(cls, "backward");
  bool own_vjp = vjp.get() != get_attr(base, "vjp").get();
  bool own_backward = backward.get() != get_attr(base, "backward").get();
  STRATA_CHECK(!(own_vjp && own_backward),
               "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. ", class_name(cls),
               " should only implement one of them.");
  return own_vjp ? vjp.release() : backward.release();
}

}  // namespace

Grads PyFunctionNode::apply(Grads&& grads) {
  HoldLock lock;
  Own ctx(wrap_node(Ref<Node>(this)));
  FunctionState& state = state_of(ctx.get());
  STRATA_CHECK(state.cls, name_, ": its ctx has been cleared");
  Py_ssize_t count = Py_ssize_t(output_is_tensor.size());
  Own args(checked(PyTuple_New(count + 1)));
  PyTuple_SET_ITEM(args.get(), 0, new_reference(ctx.get()).release());
  for (Py_ssize_t i = 0; i < count; ++i) {
    Tensor grad = size_t(i) < grads.size() ? grads[size_t(i)] : Tensor();
    if (!grad.defined() && state.materialize_grads && output_is_tensor[size_t(i)])
      grad = zero_gradient(outputs[size_t(i)]);
    PyTuple_SET_ITEM(args.get(), i + 1, checked(wrap(grad)));
  }
  grads.resize(0);
  Own fn(backward_of(state.cls));
  GradientNote own(GradientNote::Back);
  Own result(PyObject_Call(fn.get(), args.get(), nullptr));
  if (!result) {
    if (!forward_trace.empty()) {
      KeepError error;
      warn(str_cat("Error detected in ", name_, ". Traceback of forward call that caused the error:\n", forward_trace));
    }
    throw PythonError();
  }
  Own tuple = PyTuple_Check(result.get()) ? std::move(result) : make_tuple(result.release());
  Py_ssize_t given = PyTuple_GET_SIZE(tuple.get()), wanted = Py_ssize_t(input_is_tensor.size());
  // Superfluous values are fine while they are None.
  while (given > wanted && PyTuple_GET_ITEM(tuple.get(), given - 1) == Py_None) --given;
  STRATA_CHECK(given == wanted, "function ", name_, " returned an incorrect number of gradients (expected ", wanted,
               ", got ", given, ")");
  Grads out;
  for (Py_ssize_t i = 0; i < given; ++i) {
    PyObject* o = PyTuple_GET_ITEM(tuple.get(), i);
    if (!input_is_tensor[size_t(i)]) {
      STRATA_CHECK(o == Py_None, "function ", name_, " returned a gradient different than None at position ", i + 1,
                   ", but the corresponding forward input was not a Tensor");
      continue;
    }
    if (o == Py_None) {
      out.push_back(Tensor());
      continue;
    }
    if (!is_tensor(o))
      raise(PyExc_TypeError,
            str_cat("function ", name_, ": expected Tensor or None (got ", type_name(o), ") at position ", i + 1));
    // The engine adds dense gradients; a sparse one carries no numbers of its own there.
    const Own dense(is_sparse(o) ? checked(PyObject_CallMethod(o, "to_dense", nullptr)) : Py_NewRef(o));
    out.push_back(tensor_of(dense.get()));
  }
  return out;
}

namespace {

// Forward runs without recording; `setup_context` marks the form forward(*args).
Own run_forward(PyObject* cls, PyObject* ctx, PyObject* args) {
  GradModeGuard off(false);
  GradientNote own(GradientNote::Given);
  Own forward = get_attr(cls, "forward");
  PyObject* const base = base_function();
  Own setup = get_attr(cls, "setup_context");
  if (setup.get() == get_attr(base, "setup_context").get()) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    Own with_ctx(checked(PyTuple_New(n + 1)));
    PyTuple_SET_ITEM(with_ctx.get(), 0, new_reference(ctx).release());
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(with_ctx.get(), i + 1, new_reference(PyTuple_GET_ITEM(args, i)).release());
    return call_object(forward.get(), with_ctx.get());
  }
  Own output = call_object(forward.get(), args);
  call_object(setup.get(), make_tuple(new_reference(ctx).release(), new_reference(args).release(),
                                      new_reference(output.get()).release())
                               .get());
  return output;
}

void save_tensors(PyObject* ctx) {
  FunctionState& state = state_of(ctx);
  PyFunctionNode& node = function_node(ctx);
  if (!state.to_save) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(state.to_save); ++i) {
    PyObject* o = PyTuple_GET_ITEM(state.to_save, i);
    if (o == Py_None) {
      node.saved.emplace_back();
      continue;
    }
    if (!is_tensor(o))
      raise(PyExc_TypeError,
            str_cat("save_for_backward can only save tensors, but argument ", i, " is of type ", type_name(o)));
    const Tensor& t = tensor_of(o);
    node.saved.emplace_back(t, t.impl()->grad_fn_.get() == static_cast<NodeBase*>(&node));
  }
  Py_CLEAR(state.to_save);
}

// cls.apply(*args, **kwargs), with cls._ctx_type made by the metaclass.
PyObject* apply(PyObject* cls, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Own bound;
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
      bound = call_object(
          import_attr("strata.autograd.function", "_bound").get(),
          make_tuple(new_reference(cls).release(), new_reference(args).release(), new_reference(kwargs).release())
              .get());
      args = bound.get();
    }
    Own type = get_attr(cls, "_ctx_type");
    Ref<PyFunctionNode> node(make_node<PyFunctionNode>(class_name(type.get())));
    Own ctx = make_ctx(reinterpret_cast<PyTypeObject*>(type.get()), node, cls);
    FunctionState& state = state_of(ctx.get());
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    std::unordered_map<TensorImpl*, int> inputs;
    bool record = false;
    Own needs(checked(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      bool tensor = is_tensor(o), need = tensor && tensor_of(o).requires_grad();
      if (tensor) inputs.emplace(tensor_of(o).impl(), int(i));
      node->input_is_tensor.push_back(tensor);
      record |= need;
      PyTuple_SET_ITEM(needs.get(), i, wrap(need));
    }
    state.needs_input_grad = needs.release();
    record &= grad_enabled();
    if (record)
      for (Py_ssize_t i = 0; i < n; ++i)
        if (PyObject* o = PyTuple_GET_ITEM(args, i); is_tensor(o)) node->add_edge(tensor_of(o));
    Own raw = run_forward(cls, ctx.get(), args);
    Own result = finish_outputs(ctx.get(), raw.get(), inputs, record);
    if (record) save_tensors(ctx.get());
    Py_CLEAR(state.to_save);
    Py_CLEAR(state.dirty);
    Py_CLEAR(state.non_differentiable);
    return result.release();
  });
}

// _delayed_error(text, tensors): aliases of the tensors that raise when they are differentiated.
PyObject* delayed_error(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* text;
    PyObject* items;
    if (!PyArg_ParseTuple(args, "sO!", &text, &PyTuple_Type, &items)) return nullptr;
    Own result(checked(PyTuple_New(PyTuple_GET_SIZE(items))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
      PyObject* o = PyTuple_GET_ITEM(items, i);
      if (!is_tensor(o)) {
        PyTuple_SET_ITEM(result.get(), i, new_reference(o).release());
        continue;
      }
      PyTuple_SET_ITEM(result.get(), i, checked(wrap(with_error_node("DelayedError", text, tensor_of(o), {})[0])));
    }
    return result.release();
  });
}

PyMethodDef functions[] = {{"_delayed_error", delayed_error, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyMethodDef base_methods[] = {
    {"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(apply)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Runs forward on the arguments and records the function in the graph where an argument needs a gradient."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_function(PyObject* module) {
  init_ctx(module);
  PyType_Slot slots[] = {{Py_tp_methods, base_methods}, {0, nullptr}};
  PyType_Spec spec = {"strata._C.FunctionBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  add_type(module, &spec);
  add_functions(module, functions);
}

}  // namespace strata::py
