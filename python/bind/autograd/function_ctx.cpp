// The ctx of strata.autograd.Function: what forward tells about its inputs and outputs, and the history that follows.
#include <unordered_set>

#include "bind/autograd/function.h"
#include "bind/tensor/tensor.h"
#include "dispatch/boxed.h"
#include "dispatch/tls.h"
#include "grad/engine/function.h"

namespace strata::py {

namespace {

PyTypeObject* ctx_base = nullptr;

PyNode* node_object(PyObject* o) { return reinterpret_cast<PyNode*>(o); }

void set_tuple(PyObject*& field, PyObject* args) { Py_XSETREF(field, new_reference(args).release()); }

// ---- methods: each notes its arguments
PyObject* save_for_backward(PyObject* o, PyObject* args) {
  return guarded([&]() -> PyObject* {
    set_tuple(state_of(o).to_save, args);
    Py_RETURN_NONE;
  });
}
PyObject* save_for_forward(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    state_of(o);
    Py_RETURN_NONE;  // a class that has a jvp keeps them (python/strata/autograd/function.py)
  });
}
PyObject* mark_dirty(PyObject* o, PyObject* args) {
  return guarded([&]() -> PyObject* {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      if (!is_tensor(PyTuple_GET_ITEM(args, i)))
        raise(PyExc_TypeError, str_cat("mark_dirty can accept only tensors, but argument ", i, " is of type ",
                                       type_name(PyTuple_GET_ITEM(args, i))));
    set_tuple(state_of(o).dirty, args);
    Py_RETURN_NONE;
  });
}
PyObject* mark_non_differentiable(PyObject* o, PyObject* args) {
  return guarded([&]() -> PyObject* {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      if (!is_tensor(PyTuple_GET_ITEM(args, i)))
        raise(PyExc_TypeError, str_cat("mark_non_differentiable can accept only tensors, but argument ", i,
                                       " is of type ", type_name(PyTuple_GET_ITEM(args, i))));
    set_tuple(state_of(o).non_differentiable, args);
    Py_RETURN_NONE;
  });
}
PyObject* set_materialize_grads(PyObject* o, PyObject* value) {
  return guarded([&]() -> PyObject* {
    state_of(o).materialize_grads = to_Bool(value);
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "Keeps tensors (or None) for backward, which finds them in ctx.saved_tensors."},
    {"save_for_forward", save_for_forward, METH_VARARGS, "For jvp; a class without one keeps nothing."},
    {"mark_dirty", mark_dirty, METH_VARARGS, "Names the inputs that forward has written; it must return them."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS, "Names outputs that have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "Whether backward gets zeros (True, the default) or None for outputs that had no gradient."},
    {nullptr, nullptr, 0, nullptr}};

// ---- attributes
PyObject* get_saved_tensors(PyObject* o, void*) {
  return guarded([&] {
    PyFunctionNode& node = function_node(o);
    Own tuple(checked(PyTuple_New(Py_ssize_t(node.saved.size()))));
    for (size_t i = 0; i < node.saved.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), checked(wrap(node.saved[i].unpack(&node))));
    return tuple.release();
  });
}

template <PyObject* FunctionState::* Field>
PyObject* get_field(PyObject* o, void*) {
  return guarded([&] {
    PyObject* value = state_of(o).*Field;
    return new_reference(value ? value : Py_None).release();
  });
}
template <PyObject* FunctionState::* Field>
int set_field(PyObject* o, PyObject* value, void*) {
  return guarded([&]() -> PyObject* {
    set_tuple(state_of(o).*Field, value ? value : Py_None);
    return Py_None;
  })
             ? 0
             : -1;
}
PyObject* get_materialize(PyObject* o, void*) {
  return guarded([&] { return wrap(state_of(o).materialize_grads); });
}
int set_materialize(PyObject* o, PyObject* value, void*) {
  return guarded([&]() -> PyObject* {
    state_of(o).materialize_grads = value && to_Bool(value);
    return Py_None;
  })
             ? 0
             : -1;
}

PyGetSetDef getset[] = {
    {"saved_tensors", get_saved_tensors, nullptr, "What save_for_backward kept, checked for writes since.", nullptr},
    {"needs_input_grad", get_field<&FunctionState::needs_input_grad>, set_field<&FunctionState::needs_input_grad>,
     "One bool per argument of forward: whether it needs a gradient.", nullptr},
    {"to_save", get_field<&FunctionState::to_save>, nullptr, nullptr, nullptr},
    {"dirty_tensors", get_field<&FunctionState::dirty>, nullptr, nullptr, nullptr},
    {"non_differentiable", get_field<&FunctionState::non_differentiable>, nullptr, nullptr, nullptr},
    {"materialize_grads", get_materialize, set_materialize, nullptr, nullptr},
    {"_forward_cls", get_field<&FunctionState::cls>, nullptr, "The Function that made it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// _make_ctx_type(name)
PyObject* make_ctx_type(PyObject*, PyObject* name) {
  return guarded([&] {
    const PyType_Slot none[] = {{0, nullptr}};
    return reinterpret_cast<PyObject*>(
        derive_node_type("function." + std::string(text_of(name)), ctx_base, none, false, false));
  });
}

PyMethodDef functions[] = {{"_make_ctx_type", make_ctx_type, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

std::unordered_set<TensorImpl*> impls_of(PyObject* tuple) {
  std::unordered_set<TensorImpl*> found;
  if (tuple)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) found.insert(tensor_of(PyTuple_GET_ITEM(tuple, i)).impl());
  return found;
}

}  // namespace

FunctionState& state_of(PyObject* ctx) {
  FunctionState* state = node_object(ctx)->function;
  STRATA_CHECK(state, "this node belongs to no autograd.Function");
  return *state;
}

PyFunctionNode& function_node(PyObject* ctx) {
  state_of(ctx);
  return static_cast<PyFunctionNode&>(node_of(ctx));
}

Own make_ctx(PyTypeObject* type, const Ref<PyFunctionNode>& node, PyObject* cls) {
  if (!PyType_IsSubtype(type, ctx_base)) raise(PyExc_TypeError, "autograd.Function: _ctx_type is not a class of ctx");
  Own o(checked(type->tp_alloc(type, 0)));
  PyNode* self = node_object(o.get());
  self->function = new FunctionState;
  self->function->cls = new_reference(cls).release();
  self->node = node.get();
  node->incref();
  node->pyobj = self;
  return o;
}

int traverse_function(FunctionState* s, visitproc visit, void* arg) {
  Py_VISIT(s->cls);
  Py_VISIT(s->to_save);
  Py_VISIT(s->dirty);
  Py_VISIT(s->non_differentiable);
  Py_VISIT(s->needs_input_grad);
  return 0;
}

void clear_function(FunctionState* s) {
  Py_CLEAR(s->cls);
  Py_CLEAR(s->to_save);
  Py_CLEAR(s->dirty);
  Py_CLEAR(s->non_differentiable);
  Py_CLEAR(s->needs_input_grad);
}

void free_function(FunctionState* s) { delete s; }

Own finish_outputs(PyObject* ctx, PyObject* raw, const std::unordered_map<TensorImpl*, int>& inputs, bool record) {
  FunctionState& state = state_of(ctx);
  PyFunctionNode& fn = function_node(ctx);
  Ref<Node> node(&fn);
  const char* name = lasting_text(fn.name());
  std::unordered_set<TensorImpl*> dirty = impls_of(state.dirty), fixed = impls_of(state.non_differentiable);
  Own items = PyTuple_Check(raw) ? new_reference(raw) : make_tuple(new_reference(raw).release());
  Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  Own result(checked(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(items.get(), i);
    fn.output_is_tensor.push_back(is_tensor(o));
    if (!is_tensor(o)) {
      fn.outputs.push_back(OutputMeta{});
      PyTuple_SET_ITEM(result.get(), i, new_reference(o).release());
      continue;
    }
    TensorImpl* impl = tensor_of(o).impl();
    OutputUse use{inputs.count(impl) > 0, dirty.erase(impl) > 0, !record || fixed.count(impl) > 0, name};
    Tensor t = take_output(node, tensor_of(o), use);
    PyTuple_SET_ITEM(result.get(), i, checked(wrap(t)));
  }
  STRATA_CHECK(dirty.empty(), fn.name(),
               ": Some elements marked as dirty during the forward method were not returned as "
               "output. The inputs that are modified inplace must all be outputs of the Function.");
  if (PyTuple_Check(raw)) return result;
  return new_reference(PyTuple_GET_ITEM(result.get(), 0));
}

void init_ctx(PyObject* module) {
  const PyType_Slot slots[] = {{Py_tp_methods, methods}, {Py_tp_getset, getset}, {0, nullptr}};
  ctx_base = derive_node_type("function.FunctionCtx", node_type, slots, true, true);
  add_object(module, "FunctionCtx", new_reference(reinterpret_cast<PyObject*>(ctx_base)).release());
  add_functions(module, functions);
}

}  // namespace strata::py
