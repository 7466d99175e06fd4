// The tensor's Python type: objects from a free list, identity kept through the TensorImpl, and ownership that turns
// around when the Python object would die before a C++ tensor that still needs it.
#include "bind/tensor/tensor.h"

#include "bind/args/convert.h"
#include "bind/dispatch/modes.h"
#include "bind/types/types.h"
#include "grad/engine/variable.h"
#include "structmember.h"

namespace strata::py {

PyTypeObject* tensor_base_type;
PyObject* tensor_class;
PyObject* parameter_class;

namespace {

constexpr int kMaxFree = 512;
PyTensor* free_list[kMaxFree];
int free_count = 0;

PyTensor* object_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

// The object holds what a fresh one would not have: its class, attributes, weak references, hooks.
bool is_worth_keeping(PyObject* o) {
  PyTensor* p = object_of(o);
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) != tensor_class || p->weakrefs || p->hooks ||
         (p->dict && PyDict_GET_SIZE(p->dict) > 0);
}

// C++ still holds the tensor that this object shows.
bool outlived(PyObject* o) {
  TensorImpl* impl = object_of(o)->tensor.impl();
  return impl && impl->pyobj_ == o && impl->use_count() > 1 && is_worth_keeping(o);
}

PyObject* allocate(PyTypeObject* type) {
  if (STRATA_LIKELY(free_count > 0 && type->tp_basicsize == sizeof(PyTensor)))
    return PyObject_Init(reinterpret_cast<PyObject*>(free_list[--free_count]), type);
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) throw PythonError();
  // Tracked again once it has attributes or hooks: only then can it be part of a cycle.
  if (type->tp_basicsize == sizeof(PyTensor)) PyObject_GC_UnTrack(o);
  return o;
}

// Also the last step of the dealloc that Python makes for subclasses, hence the reference to the type is dropped here.
void dealloc_tensor(PyObject* o) {
  PyTensor* p = object_of(o);
  TensorImpl* impl = p->tensor.impl();
  if (impl && impl->pyobj_ == o) {
    if (STRATA_UNLIKELY(outlived(o))) {
      // From here on the TensorImpl owns this object and the object's handle counts for nothing.
      impl->py_owned_ = true;
      Py_SET_REFCNT(o, 1);
      impl->decref();
      return;
    }
    impl->pyobj_ = nullptr;
  }
  if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  if (p->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(p->dict);
  Py_CLEAR(p->hooks);
  Tensor last = std::move(p->tensor);
  PyTypeObject* type = Py_TYPE(o);
  if (STRATA_LIKELY(free_count < kMaxFree && type->tp_basicsize == sizeof(PyTensor)))
    free_list[free_count++] = p;
  else
    type->tp_free(o);
  Py_DECREF(type);
}

// An object that will outlive its Python references is a root: what it holds is not counted as its own, and stays where
// a cycle that leads to it is broken.
bool is_root(PyObject* o) {
  TensorImpl* impl = object_of(o)->tensor.impl();
  return impl && !impl->py_owned_ && outlived(o);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  if (!object_of(o)->tensor.impl() || is_root(o)) return 0;
  Py_VISIT(object_of(o)->dict);
  Py_VISIT(object_of(o)->hooks);
  return 0;
}

int clear(PyObject* o) {
  if (is_root(o)) return 0;
  Py_CLEAR(object_of(o)->dict);
  Py_CLEAR(object_of(o)->hooks);
  return 0;
}

int set_attribute(PyObject* o, PyObject* name, PyObject* value) {
  int status = PyObject_GenericSetAttr(o, name, value);
  if (object_of(o)->dict) track_tensor(o);
  return status;
}

PyObject* get_dict(PyObject* o, void*) {
  PyObject* dict = PyObject_GenericGetDict(o, nullptr);
  track_tensor(o);
  return dict;
}

int set_dict(PyObject* o, PyObject* value, void*) {
  int status = PyObject_GenericSetDict(o, value, nullptr);
  if (object_of(o)->dict) track_tensor(o);
  return status;
}

// A dying TensorImpl gives up the Python object that it owned.
void release_object(void* object) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(static_cast<PyObject*>(object));
  PyGILState_Release(state);
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

Py_hash_t hash(PyObject* o) { return _Py_HashPointer(o); }

PyTypeObject* type_argument(PyObject* o, const char* function) {
  if (!PyType_Check(o)) raise(PyExc_TypeError, str_cat(function, ": cls must be a type, not ", Py_TYPE(o)->tp_name));
  auto* type = reinterpret_cast<PyTypeObject*>(o);
  if (!PyType_IsSubtype(type, tensor_base_type))
    raise(PyExc_TypeError, str_cat("Creating a new Tensor subclass ", type->tp_name,
                                   ": expected a class that derives from strata.Tensor"));
  return type;
}

PyObject* set_class(PyObject*, PyObject* type) {
  tensor_class = Py_NewRef(type);
  reinterpret_cast<PyTypeObject*>(type)->tp_dealloc = dealloc_tensor;
  Py_RETURN_NONE;
}

PyObject* set_parameter(PyObject*, PyObject* type) {
  parameter_class = Py_NewRef(type);
  reinterpret_cast<PyTypeObject*>(type)->tp_dealloc = dealloc_tensor;
  Py_RETURN_NONE;
}

// _swap_tensor_impl(a, b): each object shows the other's tensor from now on. Nothing but the objects may hold the
// tensors.
PyObject* swap_tensors(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO", &a, &b)) return nullptr;
  return guarded([&]() -> PyObject* {
    for (PyObject* o : {a, b}) {
      if (!is_tensor(o)) raise(PyExc_TypeError, str_cat("swap_tensors: expected tensors, got ", Py_TYPE(o)->tp_name));
      const int64_t uses = int64_t(tensor_of(o).impl()->use_count());
      STRATA_CHECK(uses == 1, "swap_tensors: a tensor is held by ", uses - 1,
                   " others beside its Python object (a graph, a view); ", "Expected use_count of at most 1, but got ",
                   uses);
    }
    PyTensor *x = object_of(a), *y = object_of(b);
    std::swap(x->tensor, y->tensor);
    std::swap(x->hooks, y->hooks);
    x->tensor.impl()->pyobj_ = a;
    y->tensor.impl()->pyobj_ = b;
    track_tensor(a);
    track_tensor(b);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_swap_tensor_impl", swap_tensors, METH_VARARGS, nullptr},
    {"_set_tensor_class", set_class, METH_O, "Names the class of ordinary tensors: strata.Tensor."},
    {"_set_parameter_class", set_parameter, METH_O, "Names strata.nn.Parameter, whose calls need no override check."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* wrap_as(Tensor t, PyTypeObject* type) {
  PyObject* o = allocate(type);
  TensorImpl* impl = t.impl();
  impl->pyobj_ = o;
  new (&object_of(o)->tensor) Tensor(std::move(t));
  return o;
}

namespace {
// The object that shows the tensor already; a new reference.
PyObject* existing(TensorImpl* impl) {
  PyObject* o = static_cast<PyObject*>(impl->pyobj_);
  if (STRATA_UNLIKELY(impl->py_owned_)) {
    impl->py_owned_ = false;
    impl->incref();  // the object owns the tensor again; the reference that the tensor had goes to the caller
    return o;
  }
  return Py_NewRef(o);
}
}  // namespace

PyObject* wrap(const Tensor& t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (t.impl()->pyobj_) return existing(t.impl());
  return wrap_as(t, reinterpret_cast<PyTypeObject*>(tensor_class));
}

PyObject* wrap(Tensor&& t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (t.impl()->pyobj_) return existing(t.impl());
  return wrap_as(std::move(t), reinterpret_cast<PyTypeObject*>(tensor_class));
}

// tensor._make_subclass(cls, data, require_grad=False): an object of cls over the same storage, without history.
static PyObject* make_subclass(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* v[3] = {};
    read_args("_make_subclass", {"cls", "data", "require_grad"}, 3, v, args, nargs, kwnames, 2);
    PyTypeObject* type = type_argument(v[0], "_make_subclass");
    if (!is_tensor(v[1]))
      raise(PyExc_TypeError, str_cat("_make_subclass: data must be a Tensor, not ", Py_TYPE(v[1])->tp_name));
    refuse_sparse(v[1], "_make_subclass");
    Tensor t = recorded_alias(tensor_of(v[1]));
    if (v[2] && to_Bool(v[2])) set_requires_grad(t, true);
    note_subclass(t, type);
    return wrap_as(std::move(t), type);
  });
}

static PyObject* as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&] {
    PyTypeObject* type = type_argument(cls, "as_subclass");
    Tensor t = view_of(tensor_of(self));
    note_subclass(t, type);
    return wrap_as(std::move(t), type);
  });
}

void init_tensor(PyObject* module) {
  init_errors(module);
  init_dtype(module);
  init_device(module);
  init_size(module);
  init_generator(module);
  init_storage(module);

  static PyMethodDef own_methods[] = {
      {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_subclass)),
       METH_FASTCALL | METH_KEYWORDS | METH_STATIC, "A tensor of class cls over data's storage, without history."},
      {"as_subclass", as_subclass, METH_O,
       "This tensor as an object of another subclass of Tensor, in the same graph."},
      {nullptr, nullptr, 0, nullptr},
  };
  static std::vector<PyMethodDef> methods;
  for (PyMethodDef* m = tensor_methods; m->ml_name; ++m) methods.push_back(*m);
  for (PyMethodDef& m : own_methods) methods.push_back(m);
  static std::vector<PyGetSetDef> attributes;
  for (PyGetSetDef* a = tensor_attributes; a->name; ++a) attributes.push_back(*a);
  attributes.push_back({"__dict__", get_dict, set_dict, nullptr, nullptr});
  attributes.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});

  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_tensor)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
      {Py_tp_hash, reinterpret_cast<void*>(hash)},
      {Py_tp_new, reinterpret_cast<void*>(new_tensor)},
      {Py_tp_members, members},
      {Py_tp_methods, methods.data()},
      {Py_tp_getset, attributes.data()},
      {Py_tp_doc, const_cast<char*>("Base of strata.Tensor: attributes, operators and the methods of the table.")},
  };
  for (PyType_Slot s : number_slots()) slots.push_back(s);
  for (PyType_Slot s : index_slots()) slots.push_back(s);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"strata._C.TensorBase", sizeof(PyTensor), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_base_type = add_type(module, &spec);
  tensor_class = reinterpret_cast<PyObject*>(tensor_base_type);
  release_python_object = release_object;
  add_functions(module, functions);
}

}  // namespace strata::py
