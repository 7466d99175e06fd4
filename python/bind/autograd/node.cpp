#include "bind/autograd/node.h"
#include "bind/args/convert.h"

#include "structmember.h"

#include <unordered_map>

#include "bind/tensor/tensor.h"
#include "dispatch/tls.h"
#include "grad/engine/variable.h"

namespace strata::py {

PyTypeObject* node_type = nullptr;

namespace {

PyNode* self_of(PyObject* o) { return reinterpret_cast<PyNode*>(o); }

// While C++ holds the node too, the object is a root: what it holds is not garbage, whatever Python can reach, and
// stays where a cycle that leads to it is broken.
bool is_root(const PyNode* self) { return self->node && !self->owned && self->node->use_count() > 1; }

int node_traverse(PyObject* o, visitproc visit, void* arg) {
  PyNode* self = self_of(o);
  Py_VISIT(Py_TYPE(o));
  if (is_root(self)) return 0;
  Py_VISIT(self->metadata);
  Py_VISIT(self->dict);
  return self->function ? traverse_function(self->function, visit, arg) : 0;
}

int node_clear(PyObject* o) {
  PyNode* self = self_of(o);
  if (is_root(self)) return 0;
  Py_CLEAR(self->metadata);
  Py_CLEAR(self->dict);
  if (self->function) clear_function(self->function);
  return 0;
}

// An object that holds what is the user's becomes its node's, which drops it when it dies itself (forget_node): at once
// when nobody else holds the node.
void node_dealloc(PyObject* o) {
  PyNode* self = self_of(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (Node* node = self->node; node && !self->owned) {
    KeepError error;
    if (self->function || self->metadata) {
      _Py_NewReference(o);
      self->owned = true;
      PyObject_GC_Track(o);
      node->decref();
      return;
    }
    node->pyobj = nullptr;
    self->node = nullptr;
    node->decref();
  }
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  node_clear(o);
  if (self->function) free_function(self->function);
  type->tp_free(o);
  Py_DECREF(type);
}

// From the destructor of a node whose object it owns.
void forget_node(void* object) {
  if (!interpreter_alive()) return;
  HoldLock lock;
  KeepError error;
  PyNode* self = static_cast<PyNode*>(object);
  self->node = nullptr;
  self->owned = false;
  Py_DECREF(reinterpret_cast<PyObject*>(self));
}

// Nodes of Functions print with their module, as classes that Python made do.
PyObject* node_repr(PyObject* o) {
  const std::string name = self_of(o)->function ? Py_TYPE(o)->tp_name : type_name(o);
  return PyUnicode_FromFormat("<%s object at %p>", name.c_str(), static_cast<void*>(o));
}

PyObject* node_name(PyObject* o, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(node_of(o).name().c_str()); });
}

PyObject* node_next_functions(PyObject* o, void*) {
  return guarded([&] {
    Node& node = node_of(o);
    Own tuple(checked(PyTuple_New(Py_ssize_t(node.edges.size()))));
    for (size_t i = 0; i < node.edges.size(); ++i) {
      Own edge = make_tuple(wrap_node(node.edges[i].node), PyLong_FromUnsignedLong(node.edges[i].input_nr));
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), edge.release());
    }
    return tuple.release();
  });
}

PyObject* node_metadata(PyObject* o, void*) {
  PyNode* self = self_of(o);
  if (!self->metadata) self->metadata = PyDict_New();
  Py_XINCREF(self->metadata);
  return self->metadata;
}

PyObject* node_sequence(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(node_of(o).sequence_nr); });
}

PyObject* node_input_metadata(PyObject* o, void*) {
  return guarded([&] {
    Node& node = node_of(o);
    Own tuple(checked(PyTuple_New(Py_ssize_t(node.outputs.size()))));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const OutputMeta& m = node.outputs[i];
      Own item = make_tuple(make_size(m.sizes), wrap(m.dtype), wrap(m.device));
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), item.release());
    }
    return tuple.release();
  });
}

PyObject* node_forward_trace(PyObject* o, void*) {
  return guarded([&] {
    Node& node = node_of(o);
    return PyUnicode_FromString((node.forward_trace.empty() ? source_text(node.mark) : node.forward_trace).c_str());
  });
}

// Runs one node by hand: gradients of its outputs in, of its inputs out.
PyObject* node_call(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs)) raise(PyExc_TypeError, "a node takes no keyword arguments");
    Node& node = node_of(o);
    Ref<Node> keep(&node);
    Grads grads = grads_from(args, node.name());
    grads.resize(node.outputs.size() ? node.outputs.size() : 1);
    Grads out = node.apply(std::move(grads));
    Own tuple = grads_tuple(out);
    if (out.size() != 1) return tuple.release();
    return new_reference(PyTuple_GET_ITEM(tuple.get(), 0)).release();
  });
}

PyObject* accumulator_variable(PyObject* o, void*) {
  return guarded([&] { return wrap(static_cast<AccumulateGrad&>(node_of(o)).variable); });
}

PyObject* no_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "cannot create '%s' objects: nodes are made by operators", type->tp_name);
  return nullptr;
}

PyObject* register_hook(PyObject* o, PyObject* fn);
PyObject* register_prehook(PyObject* o, PyObject* fn);

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "Name of the node, such as 'AddBackward0'."},
    {"register_hook", register_hook, METH_O,
     "Registers fn(grad_inputs, grad_outputs), called after the node has run; a result other than None replaces the "
     "gradients of the inputs. Returns a handle with remove()."},
    {"register_prehook", register_prehook, METH_O,
     "Registers fn(grad_outputs), called before the node runs; a result other than None replaces them. Returns a "
     "handle "
     "with remove()."},
    {"_sequence_nr", node_sequence, METH_NOARGS, "Number of the recorded call on its thread."},
    {"__dir__", node_names, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef node_getset[] = {
    {"next_functions", node_next_functions, nullptr, "Pairs (node, index of its output), one per input.", nullptr},
    {"metadata", node_metadata, nullptr, "A dict for the user's notes; lives as long as the node.", nullptr},
    {"_input_metadata", node_input_metadata, nullptr, "Sizes, dtype and device of each output of the call.", nullptr},
    {"_forward_trace", node_forward_trace, nullptr, "Where the call was recorded.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyGetSetDef accumulator_getset[] = {
    {"variable", accumulator_variable, nullptr, "The leaf whose .grad it adds to.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef base_members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weakrefs), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyMemberDef ctx_members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weakrefs), READONLY, nullptr},
                             {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, nullptr},
                             {nullptr, 0, 0, 0, nullptr}};

PyTypeObject* type_for(const Node& node) {
  static auto* types = new std::unordered_map<std::string, PyTypeObject*>;
  std::string name = node.name();
  PyTypeObject*& type = (*types)[name];
  if (!type) {
    const PyType_Slot slots[] = {{node.is_accumulator() ? Py_tp_getset : 0, accumulator_getset}, {0, nullptr}};
    type = derive_node_type(name, node_type, slots, false, false);
  }
  return type;
}

}  // namespace

// Every type of the family names its own dealloc: the default one of derived heap types would clear attributes before
// node_dealloc could keep them.
PyTypeObject* derive_node_type(const std::string& name, PyTypeObject* base, const PyType_Slot* extra, bool attributes,
                               bool subclassable) {
  std::vector<PyType_Slot> slots = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                                    {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                                    {Py_tp_clear, reinterpret_cast<void*>(node_clear)}};
  if (attributes) slots.push_back({Py_tp_members, ctx_members});
  for (; extra->slot; ++extra) slots.push_back(*extra);
  slots.push_back({0, nullptr});
  std::string* full = new std::string("strata.autograd." + name);  // types keep the pointer
  PyType_Spec spec = {full->c_str(), int(sizeof(PyNode)), 0,
                      unsigned(Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | (subclassable ? Py_TPFLAGS_BASETYPE : 0)),
                      slots.data()};
  Own bases = make_tuple(new_reference(reinterpret_cast<PyObject*>(base)).release());
  return reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())));
}

Node& node_of(PyObject* o) {
  Node* node = self_of(o)->node;
  STRATA_CHECK(node, "this node has been freed together with its graph");
  return *node;
}

PyObject* wrap_node(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  PyNode* self = static_cast<PyNode*>(node->pyobj);
  if (self && self->owned) {
    self->owned = false;  // the node's reference becomes the caller's
    node->incref();
    return reinterpret_cast<PyObject*>(self);
  }
  if (!self) {
    PyTypeObject* type = type_for(*node);
    self = self_of(checked(type->tp_alloc(type, 0)));
    self->node = node.get();
    node->incref();
    node->pyobj = self;
    return reinterpret_cast<PyObject*>(self);
  }
  Py_INCREF(reinterpret_cast<PyObject*>(self));
  return reinterpret_cast<PyObject*>(self);
}

PyObject* grad_fn_object(const Tensor& t) { return wrap_node(Ref<Node>(static_cast<Node*>(grad_fn(t).get()))); }

Own grads_tuple(const Grads& grads) {
  Own tuple(checked(PyTuple_New(Py_ssize_t(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), checked(wrap(grads[i])));
  return tuple;
}

Grads grads_from(PyObject* result, const std::string& who) {
  Grads grads;
  auto add = [&](PyObject* o) {
    if (o == Py_None) {
      grads.push_back(Tensor());
      return;
    }
    if (!is_tensor(o)) raise(PyExc_TypeError, who + ": expected Tensor or None (got " + type_name(o) + ")");
    refuse_sparse(o, who.c_str());
    grads.push_back(tensor_of(o));
  };
  if (PyTuple_Check(result) || PyList_Check(result)) {
    Own items(checked(PySequence_Fast(result, "")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      add(PySequence_Fast_GET_ITEM(items.get(), i));
  } else {
    add(result);
  }
  return grads;
}

// ---- hooks of nodes

namespace {

Grads run_node_hook(Hook& hook, std::initializer_list<const Grads*> args, size_t expected) {
  HoldLock lock;
  SharedObject fn = hook.fn;
  if (!fn) return {};
  Own tuple(checked(PyTuple_New(Py_ssize_t(args.size()))));
  Py_ssize_t i = 0;
  for (const Grads* grads : args) PyTuple_SET_ITEM(tuple.get(), i++, grads_tuple(*grads).release());
  Own result = call_object(fn.get(), tuple.get());
  if (result.get() == Py_None) return {};
  Grads changed = grads_from(result.get(), "hook '" + callable_source(fn.get()) + "'");
  STRATA_CHECK(changed.size() == expected, "hook '", callable_source(fn.get()),
               "' has returned an incorrect number of values (got ", changed.size(), ", but expected ", expected, ")");
  return changed;
}

void erase_node_hook(PyObject* target, int64_t id) {
  Node* node = self_of(target)->node;
  if (!node || !node->hooks()) return;
  node->hooks()->post.take(id);
  node->hooks()->pre.take(id);
}

PyObject* register_hook(PyObject* o, PyObject* fn) {
  return guarded([&] {
    std::shared_ptr<Hook> hook = make_hook(fn);
    node_of(o).make_hooks().post.add({hook->id, [hook](const Grads& inputs, const Grads& outputs) {
                                        return run_node_hook(*hook, {&inputs, &outputs}, inputs.size());
                                      }});
    return make_hook_handle(hook, o, erase_node_hook);
  });
}

PyObject* register_prehook(PyObject* o, PyObject* fn) {
  return guarded([&] {
    std::shared_ptr<Hook> hook = make_hook(fn);
    node_of(o).make_hooks().pre.add(
        {hook->id, [hook](const Grads& outputs) { return run_node_hook(*hook, {&outputs}, outputs.size()); }});
    return make_hook_handle(hook, o, erase_node_hook);
  });
}

}  // namespace

void init_node(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                         {Py_tp_new, reinterpret_cast<void*>(no_new)},
                         {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                         {Py_tp_getattro, reinterpret_cast<void*>(node_attribute)},
                         {Py_tp_call, reinterpret_cast<void*>(node_call)},
                         {Py_tp_methods, node_methods},
                         {Py_tp_getset, node_getset},
                         {Py_tp_members, base_members},
                         {0, nullptr}};
  PyType_Spec spec = {"strata.autograd.graph.Node", int(sizeof(PyNode)), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, slots};
  node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  add_object(module, "Node", new_reference(reinterpret_cast<PyObject*>(node_type)).release());
  forget_python_node = forget_node;
}

}  // namespace strata::py
