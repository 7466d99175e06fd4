// Operators and kernels written in Python: what stands behind strata.library.
#include <algorithm>

#include "bind/autograd/function.h"
#include "bind/dispatch/graph.h"
#include "bind/dispatch/modes.h"
#include "bind/dispatch/stack.h"
#include "bind/tensor/tensor.h"
#include "dispatch/boxed.h"
#include "grad/engine/library.h"
#include "jit/expression.h"

namespace strata::py {

namespace {

bool any_meta(const Stack& stack) {
  for (const IValue& v : stack) {
    if (v.is_tensor() && v.get<Tensor>().is_meta()) return true;
    if (v.is_tensors())
      for (const Tensor& t : v.get<IValue::TensorVec>())
        if (t.defined() && t.is_meta()) return true;
  }
  return false;
}

// Keys that a kernel for `key` has passed: off while it runs, so that calling the operator again goes inwards. Autograd
// stays on, since a kernel for it may be made of operators that are recorded, and so do the innermost ones.
KeySet passed(Key key) {
  if (key <= Key::Meta || key == Key::Autograd) return {};
  KeySet all((1u << kKeyCount) - 1);
  return all - all.below(key) - KeySet(Key::Python);
}

// A function of Python as a kernel. Registered kernels are never freed, since calls may be running them.
struct PythonKernel {
  SharedObject fn;
  std::string source;
  KeySlot slot;
  bool takes_operator = false;      // a fallback: the operator comes first
  bool yields_to_previous = false;  // calls to the operator from inside go to what was there before
  OperatorTable::Saved previous{};

  void run(Operator& op, Dispatch d, Stack& stack) const {
    if (yields_to_previous && std::find(active().begin(), active().end(), this) != active().end())
      return run_previous(op, d, stack);
    if (slot.key == Key::Backend && d.device == kForeignDevice) {  // a subclass's handler comes first
      const Slot& handlers = OperatorTable::instance().foreign_slot();
      if (run_saved(op, {handlers.typed.load(), handlers.boxed.load(), nullptr, false}, d, stack)) return;
    }
    if (slot.key == Key::Backend && any_meta(stack)) {
      // Of a recording: tensors of a device, which have a shape alone, go by the kernel for shapes.
      const Slot& shapes = op.slots[int(Key::Meta)];
      if (run_saved(op, {shapes.typed.load(), shapes.boxed.load(), nullptr, false}, d, stack)) return;
    }
    if (slot.key == Key::Backend && slot.device != kCompositeSlot && any_meta(stack)) {
      if (run_saved(op, previous, d, stack) || (takes_operator && run_plugin(op, d, stack))) return;
      throw_error(ErrorKind::NotImplemented,
                  str_cat(op.name,
                          ": attempted to run this operator with meta tensors, but it has no kernel for them; register "
                          "one with strata.library.register_fake or impl(..., \"Meta\")"));
    }
    ExcludeGuard outer(passed(slot.key));
    struct Active {
      explicit Active(const PythonKernel* k) { active().push_back(k); }
      ~Active() { active().pop_back(); }
    } inside(this);
    HoldLock lock;
    PythonArgs args = stack_to_args(op, stack);
    if (takes_operator) {
      Own first = make_tuple(new_reference(operator_object(op)).release());
      args.args = Own(checked(PySequence_Concat(first.get(), args.args.get())));
    }
    Own result = call_object(fn.get(), args.args.get(), args.kwargs.get());
    Stack results;
    results_from_python(op, result.get(), stack, source, results);
    stack.swap(results);
  }

 private:
  static bool run_slot(const Slot& s, Operator& op, Dispatch d, Stack& stack) {
    return run_saved(op, {s.typed.load(), s.boxed.load(), nullptr, false}, d, stack);
  }
  // What serves all operators of a plugin's device; of an operator's own kernel that may be a fallback.
  bool run_plugin(Operator& op, Dispatch d, Stack& stack) const {
    return run_slot(OperatorTable::instance().device_slot(slot.device, takes_operator), op, d, stack);
  }
  void run_previous(Operator& op, Dispatch d, Stack& stack) const {
    if (run_saved(op, previous, d, stack)) return;
    if (slot.device != kCompositeSlot && run_slot(op.composite, op, d, stack)) return;
    if (slot.key == Key::Backend && slot.device < kForeignDevice && run_plugin(op, d, stack)) return;
    throw_error(ErrorKind::NotImplemented,
                str_cat(op.name, ": called from its own override, and no kernel was there before"));
  }
  static std::vector<const PythonKernel*>& active() {
    static thread_local std::vector<const PythonKernel*> kernels;
    return kernels;
  }
};

const BoxedKernel* make_kernel(PythonKernel kernel) {
  auto* kept = new PythonKernel(std::move(kernel));
  return new BoxedKernel{[kept](Operator& op, Dispatch d, Stack& stack) { kept->run(op, d, stack); }, kept->source};
}

// ---- tokens: what a registration replaced

struct Token {
  Operator* op;
  KeySlot slot;
  OperatorTable::Saved saved;
};
constexpr const char* kToken = "strata.dispatch.token";

PyObject* make_token(Operator& op, KeySlot slot, OperatorTable::Saved saved) {
  return checked(PyCapsule_New(new Token{&op, slot, saved}, kToken,
                               [](PyObject* o) { delete static_cast<Token*>(PyCapsule_GetPointer(o, kToken)); }));
}

// _dispatch_define(schema) -> OpOverload
PyObject* define(PyObject*, PyObject* schema) {
  return guarded(
      [&] { return new_reference(operator_object(define_operator(std::string(to_Str(schema))))).release(); });
}

// _dispatch_expression(schema, text, dtypes, float) -> OpOverload
PyObject* expression(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *schema, *text, *dtypes;
    int to_float = 0;
    if (!PyArg_ParseTuple(args, "UUOp", &schema, &text, &dtypes, &to_float)) return nullptr;
    jit::Expression e{std::string(to_Str(schema)), std::string(to_Str(text)), 0,
                      to_float ? eager::Promote::Float : eager::Promote::Common};
    Own list(checked(PySequence_Fast(dtypes, "expression: dtypes: expected a sequence of dtypes")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
      e.dtypes |= 1u << int(to_DType(PySequence_Fast_GET_ITEM(list.get(), i)));
    return new_reference(operator_object(jit::define_expression(e))).release();
  });
}

// _dispatch_undefine(op)
PyObject* undefine(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    OperatorTable::instance().remove(operator_of(o));
    Py_RETURN_NONE;
  });
}

// _dispatch_impl(op, key, fn, yields=False) -> token
PyObject* impl(PyObject*, PyObject* args) {
  PyObject *o, *key, *fn;
  int yields = 0;
  if (!PyArg_ParseTuple(args, "OUO|p", &o, &key, &fn, &yields)) return nullptr;
  return guarded([&] {
    if (!PyCallable_Check(fn)) raise(PyExc_TypeError, "library: a kernel must be callable, got " + type_name(fn));
    Operator& op = operator_of(o);
    KeySlot slot = parse_key(to_Str(key));
    Slot& at = slot_at(op, slot);
    PythonKernel kernel{share(fn), callable_source(fn), slot};
    kernel.yields_to_previous = yields != 0;
    kernel.previous = {at.typed.load(), at.boxed.load(), at.source, at.fallthrough};
    const char* source = lasting_text(kernel.source);
    bool quiet = false;
    if (yields && at.empty() && !op.composite.empty()) {
      warn(str_cat(
          "Overriding a previously registered kernel for the same operator and the same dispatch key: operator ",
          op.name, ", key ", text_of(key), ", previous kernel from ",
          op.composite.source ? op.composite.source : "its definition", ", new kernel from ", source));
      quiet = true;
    }
    return make_token(op, slot, give_kernel(op, slot, make_kernel(std::move(kernel)), source, quiet));
  });
}

// _library_failures(): what libraries in C++ raised while they were loaded.
PyObject* failures(PyObject*, PyObject*) {
  return guarded([&] {
    const std::vector<std::string> texts = library_failures();
    Own list(checked(PyList_New(0)));
    for (const std::string& t : texts)
      if (PyList_Append(list.get(), Own(checked(PyUnicode_FromStringAndSize(t.data(), Py_ssize_t(t.size())))).get()) <
          0)
        throw PythonError();
    return list.release();
  });
}

// _dispatch_restore(token)
PyObject* restore(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Token* token = static_cast<Token*>(PyCapsule_GetPointer(o, kToken));
    if (!token) throw PythonError();
    OperatorTable::instance().restore(*token->op, token->slot.key, token->slot.device, token->saved);
    Py_RETURN_NONE;
  });
}

// _dispatch_fallthrough(op, key) -> token
PyObject* fallthrough(PyObject*, PyObject* args) {
  PyObject *o, *key;
  if (!PyArg_ParseTuple(args, "OU", &o, &key)) return nullptr;
  return guarded([&] {
    Operator& op = operator_of(o);
    KeySlot slot = parse_key(to_Str(key));
    STRATA_CHECK_VALUE(slot.key != Key::Backend, "library: the innermost key cannot fall through, got ", text_of(key));
    return make_token(op, slot, OperatorTable::instance().fallthrough(op, slot.key));
  });
}

// _dispatch_fallback(key, fn or None): the fallback of a whole key, or of a device's: of operators that are not
// composite and have no kernel there. Called again by it, they go to what a plugin has for them.
PyObject* fallback(PyObject*, PyObject* args) {
  PyObject *key, *fn;
  if (!PyArg_ParseTuple(args, "UO", &key, &fn)) return nullptr;
  return guarded([&]() -> PyObject* {
    KeySlot slot = parse_key(to_Str(key));
    const bool device = slot.key == Key::Backend && slot.device >= 0 && !Device{int8_t(slot.device), -1}.is_meta();
    STRATA_CHECK_VALUE(device || (slot.key > Key::Autograd && slot.key != Key::Python), "library: the key ",
                       text_of(key), " takes no fallback; use a device's, Autocast, Vmap or User0 to User3");
    OperatorTable& table = OperatorTable::instance();
    auto give = [&](const BoxedKernel* kernel) {
      device ? table.device_fallback(slot.device, kernel) : table.fallback(slot.key, kernel);
    };
    if (fn == Py_None) {
      give(nullptr);
      Py_RETURN_NONE;
    }
    if (!PyCallable_Check(fn)) raise(PyExc_TypeError, "library: a fallback must be callable, got " + type_name(fn));
    PythonKernel kernel{share(fn), callable_source(fn), slot};
    kernel.takes_operator = true;
    kernel.yields_to_previous = device;  // other keys are off inside
    give(make_kernel(std::move(kernel)));
    Py_RETURN_NONE;
  });
}

// _dispatch_has_kernel(op, key)
PyObject* has_kernel(PyObject*, PyObject* args) {
  PyObject *o, *key;
  if (!PyArg_ParseTuple(args, "OU", &o, &key)) return nullptr;
  return guarded([&] { return wrap(!slot_at(operator_of(o), parse_key(to_Str(key))).empty()); });
}

// _dispatch_keys_on_thread(include keys, exclude keys) -> what was set, for a later call
PyObject* keys_on_thread(PyObject*, PyObject* args) {
  unsigned include, exclude;
  if (!PyArg_ParseTuple(args, "II", &include, &exclude)) return nullptr;
  DispatchTls& tls = dispatch_tls;
  PyObject* before = Py_BuildValue("II", tls.include.bits(), tls.exclude.bits());
  tls.include = KeySet(include);
  tls.exclude = KeySet(exclude);
  refresh_tls_mask();
  return before;
}

// _dispatch_thread_keys() -> (include, exclude) as bits
PyObject* thread_keys(PyObject*, PyObject*) {
  return Py_BuildValue("II", dispatch_tls.include.bits(), dispatch_tls.exclude.bits());
}

// _dispatch_key_bit(name)
PyObject* key_bit(PyObject*, PyObject* name) {
  return guarded([&] { return wrap(int64_t(KeySet(parse_key(to_Str(name)).key).bits())); });
}

// _dispatch_keys(tensor) -> names, outermost first
PyObject* tensor_keys(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_tensor(o)) raise(PyExc_TypeError, "expected Tensor, got " + type_name(o));
    Own list(checked(PyList_New(0)));
    for (int k = kKeyCount - 1; k >= 0; --k) {
      if (!tensor_of(o).keys().has(static_cast<Key>(k))) continue;
      Own name(checked(PyUnicode_FromString(key_name(static_cast<Key>(k)))));
      checked(PyList_Append(list.get(), name.get()));
    }
    return list.release();
  });
}

// _shape_only(tensor): a tensor of the same shape, strides, dtype and device, without data.
PyObject* shape_only(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_tensor(o)) raise(PyExc_TypeError, "expected Tensor, got " + type_name(o));
    const Tensor& t = tensor_of(o);
    return wrap(make_tensor_strided(t.sizes(), t.strides(), t.dtype(), t.device(), true));
  });
}

PyMethodDef functions[] = {{"_shape_only", shape_only, METH_O, nullptr},
                           {"_dispatch_define", define, METH_O, nullptr},
                           {"_dispatch_expression", expression, METH_VARARGS, nullptr},
                           {"_dispatch_undefine", undefine, METH_O, nullptr},
                           {"_dispatch_impl", impl, METH_VARARGS, nullptr},
                           {"_library_failures", failures, METH_NOARGS, nullptr},
                           {"_dispatch_restore", restore, METH_O, nullptr},
                           {"_dispatch_fallthrough", fallthrough, METH_VARARGS, nullptr},
                           {"_dispatch_fallback", fallback, METH_VARARGS, nullptr},
                           {"_dispatch_has_kernel", has_kernel, METH_VARARGS, nullptr},
                           {"_dispatch_keys_on_thread", keys_on_thread, METH_VARARGS, nullptr},
                           {"_dispatch_thread_keys", thread_keys, METH_NOARGS, nullptr},
                           {"_dispatch_key_bit", key_bit, METH_O, nullptr},
                           {"_dispatch_keys", tensor_keys, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_library(PyObject* module) {
  init_operator(module);
  init_record(module);
  init_compiled(module);
  init_blocks(module);
  init_guards(module);
  add_functions(module, functions);
}

}  // namespace strata::py
