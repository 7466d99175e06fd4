#include "bind/autograd/anomaly.h"

#include <deque>
#include <unordered_set>

#include "bind/tensor/tensor.h"
#include "dispatch/boxed.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"

namespace strata::py {

namespace {

// One operator call whose result had NaN while its arguments had none.
struct Origin {
  std::string op, trace;
  uint64_t sequence_nr;
  bool recorded;  // its result has a node
};

struct Watch {
  bool on = false;
  std::deque<Origin> origins;  // the latest ones, oldest first
};
constexpr size_t kKept = 256;

Watch& watch() {
  static thread_local Watch w;
  return w;
}

// The Python stack of this thread, innermost call last.
std::string python_stack() {
  if (!interpreter_alive()) return "";
  HoldLock lock;
  KeepError error;
  try {
    Own lines = call_object(import_attr("traceback", "format_stack").get(), make_tuple().get());
    Own empty(checked(PyUnicode_FromString("")));
    Own text(checked(PyUnicode_Join(empty.get(), lines.get())));
    return text_of(text.get());
  } catch (const PythonError&) {
    PyErr_Clear();
    return "";
  }
}

bool has_nan(const Tensor& t) {
  if (!t.defined() || !is_differentiable(t.dtype()) || t.is_meta() || t.keys().has(Key::Python) || t.numel() == 0)
    return false;
  GradModeGuard off(false);
  return ops::item(ops::any(ops::isnan(t))).to_bool();
}

bool has_nan(const Stack& stack) {
  for (const IValue& v : stack) {
    if (v.is_tensor() && has_nan(v.get<Tensor>())) return true;
    if (v.is_tensors())
      for (const Tensor& t : v.get<IValue::TensorVec>())
        if (has_nan(t)) return true;
  }
  return false;
}

const Tensor* first_tensor(const Stack& stack) {
  for (const IValue& v : stack) {
    if (v.is_tensor()) return &v.get<Tensor>();
    if (v.is_tensors() && !v.get<IValue::TensorVec>().empty()) return &v.get<IValue::TensorVec>()[0];
  }
  return nullptr;
}

// Every node below `root`, by sequence number, and the first leaf that holds NaN.
std::unordered_set<uint64_t> reachable(Node* root, const Tensor** bad_leaf) {
  std::unordered_set<Node*> seen{root};
  std::unordered_set<uint64_t> numbers;
  std::vector<Node*> todo{root};
  while (!todo.empty()) {
    Node* node = todo.back();
    todo.pop_back();
    if (node->is_accumulator()) {
      const Tensor& leaf = static_cast<AccumulateGrad*>(node)->variable;
      if (!*bad_leaf && has_nan(leaf)) *bad_leaf = &leaf;
    } else {
      numbers.insert(node->sequence_nr);
    }
    for (const Edge& e : node->edges)
      if (e.valid() && seen.insert(e.node.get()).second) todo.push_back(e.node.get());
  }
  return numbers;
}

// set_anomaly_enabled(enabled, check_nan=True)
PyObject* set_anomaly_mode(PyObject*, PyObject* args) {
  int enabled, check_nan = 1;
  if (!PyArg_ParseTuple(args, "p|p", &enabled, &check_nan)) return nullptr;
  return guarded([&]() -> PyObject* {
    set_anomaly(enabled != 0, check_nan != 0);
    watch().on = enabled && check_nan;
    if (!watch().on) watch().origins.clear();
    refresh_python_key();
    Py_RETURN_NONE;
  });
}
PyObject* is_anomaly(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_enabled()); }
PyObject* is_anomaly_nan(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_checks_nan()); }

PyMethodDef functions[] = {
    {"set_anomaly_enabled", set_anomaly_mode, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", is_anomaly, METH_NOARGS, "Whether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled", is_anomaly_nan, METH_NOARGS, "Whether anomaly mode looks for NaN."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool watches_nan() { return watch().on; }

NoWatch::NoWatch() : before_(watch().on) {
  watch().on = false;
  refresh_python_key();
}
NoWatch::~NoWatch() {
  watch().on = before_;
  refresh_python_key();
}

void refresh_python_key() {
  KeySet key(Key::Python);
  bool wanted = watch().on || dispatch_mode_depth() > 0;
  dispatch_tls.include = wanted ? dispatch_tls.include | key : dispatch_tls.include - key;
}

void run_watched(Operator& op, Dispatch d, Stack& stack) {
  NoWatch inner;
  bool before = has_nan(stack);
  redispatch_boxed(op, d, stack);
  if (before || !has_nan(stack)) return;
  const Tensor* result = first_tensor(stack);
  Ref<NodeBase> node = grad_fn(*result);
  Watch& w = watch();
  if (w.origins.size() == kKept) w.origins.pop_front();
  w.origins.push_back({op.name, python_stack(), node ? static_cast<Node*>(node.get())->sequence_nr : 0, bool(node)});
}

std::string nan_origin(const Tensor& t) {
  Ref<NodeBase> root = grad_fn(t);
  const Tensor* bad_leaf = nullptr;
  std::unordered_set<uint64_t> numbers;
  if (root) numbers = reachable(static_cast<Node*>(root.get()), &bad_leaf);
  const Origin *found = nullptr, *unrecorded = nullptr;
  for (const Origin& o : watch().origins) {
    if (o.recorded && !found && numbers.count(o.sequence_nr)) found = &o;
    if (!o.recorded && !unrecorded) unrecorded = &o;
  }
  if (!found) found = unrecorded;
  if (found)
    return str_cat("The first operator with nan values in its result was ", found->op, ", called at:\n", found->trace);
  if (bad_leaf) return str_cat("A leaf of shape ", bad_leaf->sizes(), " has nan values.");
  if (root) return str_cat("They reached the result at ", source_text(static_cast<Node*>(root.get())->mark), ".");
  return "The tensor is a leaf.";
}

void init_anomaly(PyObject* module) {
  take_stack_text = python_stack;
  add_functions(module, functions);
}

}  // namespace strata::py
