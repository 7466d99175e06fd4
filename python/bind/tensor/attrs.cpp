// Attributes of tensors: geometry, dtype, autograd's links, and the views that read as attributes.
#include <unordered_map>

#include "bind/args/convert.h"
#include "bind/autograd/node.h"
#include "bind/dispatch/modes.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"
#include "core/promote.h"
#include "dispatch/seen.h"
#include "grad/engine/variable.h"
#include "jit/trace/recorder.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::py {

namespace {

const Tensor& self_of(PyObject* o) { return tensor_of(o); }

// Subclasses and modes are asked as for a call of the attribute's `__get__`; the closure is its name.
PyObject* overridden(PyObject* o, const char* name) {
  if (!torch_function_enabled()) return nullptr;
  Overloaded overloaded;
  overloaded.add(o);
  if (overloaded.args.empty() && !torch_function_mode_active()) return nullptr;
  static auto* getters = new std::unordered_map<std::string_view, PyObject*>;
  PyObject*& getter = (*getters)[name];
  if (!getter) {
    Own descriptor(checked(PyObject_GetAttrString(tensor_class, name)));
    getter = checked(PyObject_GetAttrString(descriptor.get(), "__get__"));
  }
  Own args(checked(PyTuple_Pack(1, o)));
  Own kwargs(checked(PyDict_New()));
  return ask_torch_function(getter, overloaded, args.get(), kwargs.get());
}

template <auto F>
PyObject* get(PyObject* o, void* name) {
  return guarded([&]() -> PyObject* {
    if (STRATA_UNLIKELY(!is_plain_tensor(o) || torch_function_mode_active())) {
      PyObject* r = overridden(o, static_cast<const char*>(name));
      if (r) return r;
    }
    return F(tensor_of(o));
  });
}

// ---- geometry and type
PyObject* shape(const Tensor& t) { return make_size(t.sizes()); }
PyObject* dtype(const Tensor& t) { return wrap(t.dtype()); }
PyObject* device(const Tensor& t) { return wrap(t.device()); }
PyObject* layout(const Tensor&) { return wrap_layout(); }
PyObject* ndim(const Tensor& t) { return wrap(t.dim()); }
PyObject* itemsize(const Tensor& t) { return wrap(t.itemsize()); }
PyObject* nbytes(const Tensor& t) { return wrap(t.nbytes()); }
PyObject* is_meta(const Tensor& t) { return wrap(t.is_meta()); }
PyObject* is_cpu(const Tensor& t) { return wrap(t.device().is_cpu()); }
PyObject* never(const Tensor&) { return wrap(false); }
PyObject* none(const Tensor&) { Py_RETURN_NONE; }

// ---- autograd
PyObject* requires_grad(const Tensor& t) { return wrap(t.requires_grad()); }
PyObject* is_leaf(const Tensor& t) { return wrap(!grad_fn(t)); }
PyObject* output_nr(const Tensor& t) { return wrap(int64_t(t.impl()->output_nr_)); }
PyObject* version(const Tensor& t) {
  STRATA_CHECK(!t.impl()->inference_, "Inference tensors do not track version counter.");
  return wrap(int64_t(t.version()));
}
PyObject* base(const Tensor& t) {
  if (!t.is_view()) Py_RETURN_NONE;
  return wrap(Tensor(Ref<TensorImpl>(t.impl()->base_)));
}
PyObject* retains_grad(const Tensor& t) {
  AutogradMeta* meta = find_autograd_meta(t);
  return wrap(!t.is_leaf() && meta && meta->retained);
}
std::string grad_fn_name(const Tensor& t) {
  const Ref<NodeBase>& fn = grad_fn(t);
  return fn ? static_cast<Node*>(fn.get())->name() : "no node";
}
PyObject* grad_quietly(const Tensor& t) { return wrap(grad_of(t)); }
PyObject* get_grad(const Tensor& t) {
  Tensor g = grad_of(t);
  if (!g.defined() && !t.is_leaf() && !(find_autograd_meta(t) && find_autograd_meta(t)->retained))
    warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(): a tensor made by an operator (" +
        grad_fn_name(t) +
        ") keeps no gradient unless .retain_grad() is called on it before. If the leaf was meant, read .grad of the "
        "tensor that the user created with requires_grad=True.");
  return wrap(g);
}

int set_flag(PyObject* o, PyObject* value, void*) {
  PyObject* done = guarded([&] {
    if (!value) raise(PyExc_AttributeError, "requires_grad cannot be deleted");
    if (!PyBool_Check(value)) raise(PyExc_RuntimeError, "requires_grad must be a bool");
    set_requires_grad(self_of(o), value == Py_True);
    return Py_None;
  });
  return done ? 0 : -1;
}

int set_gradient(PyObject* o, PyObject* value, void*) {
  PyObject* done = guarded([&] {
    if (value && value != Py_None && !is_tensor(value))
      raise(PyExc_TypeError,
            str_cat("assigned grad expected to be a Tensor or None but got grad of type ", Py_TYPE(value)->tp_name));
    set_grad(self_of(o), to_TensorOpt(value));
    Recording::note_cleared(self_of(o));
    return Py_None;
  });
  return done ? 0 : -1;
}

// The same memory without history; writes through it count for itself and its views alone.
PyObject* get_data(const Tensor& t) {
  Tensor alias = recorded_alias(t);
  alias.impl()->writes_ = Ref<OwnWrites>::adopt(new OwnWrites);
  return wrap(std::move(alias));
}

int set_data(PyObject* o, PyObject* value, void*) {
  PyObject* done = guarded([&] {
    if (!value) raise(PyExc_RuntimeError, "Deleting tensor.data is not allowed. Delete tensor instead!");
    if (!is_tensor(value)) raise(PyExc_TypeError, str_cat("data must be a Tensor, not ", Py_TYPE(value)->tp_name));
    refuse_sparse(value, "data");
    const Tensor &t = self_of(o), &from = tensor_of(value);
    STRATA_CHECK(!recording_here(), "data: cannot be set while operators are recorded; write with copy_() instead");
    strata::set_data(t, from);
    return Py_None;
  });
  return done ? 0 : -1;
}

// ---- views
Tensor reversed(const Tensor& t) {
  DimVec dims(t.dim());
  for (int64_t i = 0; i < t.dim(); ++i) dims[i] = t.dim() - 1 - i;
  return ops::permute(t, dims);
}

void need_matrix(const Tensor& t, const char* name, bool batches) {
  if (t.dim() == 0)
    return warn(str_cat("Tensor.", name, " is deprecated on 0-D tensors. ",
                        std::string_view(name).back() == 'H' ? "Consider using x.conj()."
                                                             : "This function is the identity in these cases."));
  STRATA_CHECK(batches ? t.dim() >= 2 : t.dim() == 2, "tensor.", name, " is only supported on matrices",
               batches ? " or batches of matrices" : " (2-D tensors)", ". Got ", t.dim(), "-D tensor.");
}

PyObject* get_T(const Tensor& t) { return wrap(reversed(t)); }
PyObject* get_mT(const Tensor& t) {
  need_matrix(t, "mT", true);
  return wrap(t.dim() == 0 ? t : ops::transpose(t, -2, -1));
}
PyObject* get_H(const Tensor& t) {
  need_matrix(t, "H", false);
  Tensor r = t.dim() == 0 ? t : ops::transpose(t, 0, 1);
  return wrap(t.is_complex() ? ops::conj(r) : r);
}
PyObject* get_mH(const Tensor& t) {
  need_matrix(t, "mH", true);
  Tensor r = t.dim() == 0 ? t : ops::transpose(t, -2, -1);
  return wrap(t.is_complex() ? ops::conj(r) : r);
}
PyObject* get_real(const Tensor& t) { return wrap(ops::real(t)); }
PyObject* get_imag(const Tensor& t) {
  STRATA_CHECK(t.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
  return wrap(ops::imag(t));
}

// x.real = v writes into the parts of x.
template <PyObject* (*Part)(const Tensor&)>
int set_part(PyObject* o, PyObject* value, void*) {
  PyObject* done = guarded([&] {
    if (!value) raise(PyExc_AttributeError, "the parts of a tensor cannot be deleted");
    Own part(Part(self_of(o)));
    if (is_tensor(value))
      ops::copy_(tensor_of(part.get()), tensor_of(value));
    else
      ops::fill_(tensor_of(part.get()), to_Scalar(value));
    return Py_None;
  });
  return done ? 0 : -1;
}

PyObject* backward_hooks(PyObject* o, void*) {
  PyObject* hooks = reinterpret_cast<PyTensor*>(o)->hooks;
  return Py_NewRef(hooks ? hooks : Py_None);
}

int set_backward_hooks(PyObject* o, PyObject* value, void*) {
  Py_XSETREF(reinterpret_cast<PyTensor*>(o)->hooks, value && value != Py_None ? Py_NewRef(value) : nullptr);
  track_tensor(o);
  return 0;
}

PyObject* identity(PyObject* o, void*) { return PyLong_FromVoidPtr(tensor_of(o).impl()); }
PyObject* priority(PyObject*, void*) { return PyFloat_FromDouble(1000.0); }

PyGetSetDef attribute(const char* name, getter get, setter set, const char* doc) {
  return {name, get, set, doc, const_cast<char*>(name)};
}

}  // namespace

PyGetSetDef tensor_attributes[] = {
    attribute("shape", get<shape>, nullptr, "The sizes, as a strata.Size."),
    attribute("dtype", get<dtype>, nullptr, "The type of the elements."),
    attribute("device", get<device>, nullptr, "Where the memory is."),
    attribute("layout", get<layout>, nullptr, "strata.strided."),
    attribute("ndim", get<ndim>, nullptr, "The number of dims."),
    attribute("itemsize", get<itemsize>, nullptr, "Bytes of one element."),
    attribute("nbytes", get<nbytes>, nullptr, "Bytes of all elements."),
    attribute("is_meta", get<is_meta>, nullptr, "It has a shape but no memory."),
    attribute("is_cpu", get<is_cpu>, nullptr, "Its device is the CPU."),
    attribute("is_sparse", get<never>, nullptr, "False: all tensors are strided."),
    attribute("is_sparse_csr", get<never>, nullptr, "False: all tensors are strided."),
    attribute("is_mkldnn", get<never>, nullptr, "False: all tensors are strided."),
    attribute("is_quantized", get<never>, nullptr, "False: quantisation is explicit."),
    attribute("is_nested", get<never>, nullptr, "False: all tensors are strided."),
    attribute("names", get<none>, nullptr, "None: dims have no names."),
    attribute("requires_grad", get<requires_grad>, set_flag, "Operators on it are recorded for backward."),
    attribute("grad", get<get_grad>, set_gradient, "The gradient that backward has added up, or None."),
    attribute("_grad", get<grad_quietly>, set_gradient, "grad without the warning for non-leaves."),
    attribute("grad_fn", get<grad_fn_object>, nullptr, "The node of the graph that made it, or None for leaves."),
    attribute("is_leaf", get<is_leaf>, nullptr, "No recorded operator made it."),
    attribute("retains_grad", get<retains_grad>, nullptr, "A non-leaf whose gradient will be kept."),
    attribute("output_nr", get<output_nr>, nullptr, "Which output of grad_fn it is."),
    attribute("data", get<get_data>, set_data, "The same memory without history."),
    attribute("_version", get<version>, nullptr, "Counts writes to its memory."),
    attribute("_base", get<base>, nullptr, "What it is a view of, or None."),
    {"_backward_hooks", backward_hooks, set_backward_hooks, "Hooks registered from Python.", nullptr},
    {"_cdata", identity, nullptr, "Address of the C++ tensor.", nullptr},
    attribute("T", get<get_T>, nullptr, "A view with the dims reversed."),
    attribute("mT", get<get_mT>, nullptr, "A view with the last two dims swapped."),
    attribute("H", get<get_H>, nullptr, "The conjugate transpose of a matrix."),
    attribute("mH", get<get_mH>, nullptr, "The conjugate with the last two dims swapped."),
    attribute("real", get<get_real>, set_part<get_real>, "The real part, a view."),
    attribute("imag", get<get_imag>, set_part<get_imag>, "The imaginary part, a view."),
    {"__array_priority__", priority, nullptr, "Above NumPy's arrays.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace strata::py
