// Python objects of autograd nodes: one class per node name, one object per node. An object that holds something of the
// user's (metadata, a Function's ctx) is kept by its node once Python has dropped it.
#pragma once
#include <vector>

#include "bind/process/lock.h"
#include "grad/engine/node.h"

namespace strata {
struct SavedHooks;
}

namespace strata::py {

struct PyNode {
  PyObject_HEAD;
  Node* node;  // a counted reference unless `owned`; null once the node is gone
  bool owned;  // the node holds the one reference to this object
  PyObject* metadata;
  PyObject* dict;  // attributes that users set on a ctx; null on other nodes
  PyObject* weakrefs;
  struct FunctionState* function;  // of a ctx
};

extern PyTypeObject* node_type;  // strata.autograd.graph.Node
inline bool is_node(PyObject* o) { return PyObject_TypeCheck(o, node_type); }
Node& node_of(PyObject* o);  // raises when the node is gone

PyObject* wrap_node(const Ref<Node>& node);  // null: None
PyObject* grad_fn_object(const Tensor& t);   // what Tensor.grad_fn shows
// A class of the family. It has what `slots` (ended by a zero slot) add; with `attributes` users may set any.
PyTypeObject* derive_node_type(const std::string& name, PyTypeObject* base, const PyType_Slot* slots, bool attributes,
                               bool subclassable);
// What of PyNode::function Python's collector must see and drop; defined by Function.
int traverse_function(FunctionState* state, visitproc visit, void* arg);
void clear_function(FunctionState* state);
void free_function(FunctionState* state);

// A hook that can be taken away: `remove()` silences it at once and erases it where its owner still lives.
struct Hook {
  SharedObject fn;  // null after removal
  int64_t id = 0;
};
// strata.utils.hooks.RemovableHandle's counterpart. `target`: a tensor or node, held weakly.
PyObject* make_hook_handle(std::shared_ptr<Hook> hook, PyObject* target, void (*erase)(PyObject* target, int64_t id));

std::shared_ptr<Hook> make_hook(PyObject* fn);  // raises TypeError unless callable

// A node's attribute: beside those of its class `_saved_x` and `_raw_saved_x` of a tensor that was saved as x.
PyObject* node_attribute(PyObject* o, PyObject* name);
// The names of these, for dir(), which does not know of them.
PyObject* node_names(PyObject* o, PyObject*);
// The two arguments of a function; it is named where there are others.
std::pair<PyObject*, PyObject*> two(PyObject* args, const char* function);
std::shared_ptr<SavedHooks> make_saved_hooks(PyObject* pack, PyObject* unpack);

Own grads_tuple(const Grads& grads);  // None where undefined
// A hook's or backward's result as gradients: a tuple, a tensor or None. `who` names the source in errors.
Grads grads_from(PyObject* result, const std::string& who);

void init_node(PyObject* module);
void init_saved(PyObject* module);
void init_hooks(PyObject* module);
void init_function(PyObject* module);
void init_autocast(PyObject* module);

}  // namespace strata::py
