// The Python type of tensors, `strata._C.TensorBase`; `strata.Tensor` is its subclass made in Python.
#pragma once
#include "bind/args/args.h"

namespace strata::py {

// One per Python tensor. The TensorImpl points back, so that a tensor has one Python object.
struct PyTensor {
  PyObject_HEAD Tensor tensor;
  PyObject* weakrefs;
  PyObject* hooks;  // dict of Python's backward hooks, for users who look at it; may be null
  PyObject* dict;   // the instance's __dict__; may be null
};

extern PyTypeObject* tensor_base_type;  // strata._C.TensorBase
extern PyObject* tensor_class;          // strata.Tensor, once Python has set it
extern PyObject* parameter_class;       // strata.nn.Parameter, once it exists
inline bool is_tensor(PyObject* o) { return PyObject_TypeCheck(o, tensor_base_type); }
inline const Tensor& tensor_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->tensor; }
// A tensor of exactly strata.Tensor or strata.nn.Parameter: no __torch_function__ to ask.
inline bool is_plain_tensor(PyObject* o) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
  return type == tensor_class || type == parameter_class;
}

// A Python object of class `type` for a tensor that has none yet.
PyObject* wrap_as(Tensor t, PyTypeObject* type);
// A view of the whole tensor, in the graph: x[...].
Tensor view_of(const Tensor& t);
// To be called when a tensor's object came to own something that may lead back to it (hooks): the garbage collector
// looks at tensors from then on only.
inline void track_tensor(PyObject* o) {
  if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}

// Parts of the type, one per file.
extern PyMethodDef tensor_methods[];  // by hand; the table's methods are added to them
extern PyGetSetDef tensor_attributes[];
std::vector<PyType_Slot> number_slots();                                     // arithmetic, comparisons
std::vector<PyType_Slot> index_slots();                                      // len, [], []=
PyObject* new_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs);  // Tensor(2, 3), Tensor([1., 2.])
// The table's entry of that name; raises when the table lacks it.
const Entry& find_entry(std::string_view name);
const Entry* find_entry_or_null(std::string_view name);

// Each area adds its names to the module `strata._C`; called once from the module's init.
void init_tensor(PyObject* module);     // tensor type, dtype, device, Size, memory formats, Generator, printing support
void init_functions(PyObject* module);  // generated entries: submodule `_C._functions`, methods on TensorBase
void init_indexing(PyObject* module);
void init_convert(PyObject* module);   // tensor(), from_numpy, DLPack, buffers, pickling
void init_autograd(PyObject* module);  // modes, engine, Node objects, hooks, Function, saved tensors
void init_library(PyObject* module);   // def, impl, fallback, override, explain_dispatch, operator handles
void init_modes(PyObject* module);     // __torch_function__, __torch_dispatch__, subclasses
void init_profiler(PyObject* module);
void init_io(PyObject* module);       // saving and loading
void init_compile(PyObject* module);  // the compile service
void init_devices(PyObject* module);  // of plugins
void init_runtime(PyObject* module);  // threads, seeds, default dtype, memory statistics, io

// Serves calls whose arguments have __torch_function__; returns null without an error set when none has.
// `args` are all tensor arguments (flattened); `callable` names the function for the handler.
PyObject* torch_function(const Overloads& overloads, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                         PyObject* kwnames);
bool torch_function_mode_active();

}  // namespace strata::py
