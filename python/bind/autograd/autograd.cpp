// Gradient modes and the backward engine's face. The interpreter lock is given up while the engine runs; nodes and
// hooks of Python take it back.
#include <unordered_map>
#include <unordered_set>

#include "bind/autograd/anomaly.h"
#include "bind/autograd/node.h"
#include "bind/tensor/tensor.h"
#include "dispatch/tls.h"
#include "grad/engine/engine.h"
#include "grad/engine/variable.h"
#include "jit/trace/recorder.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"

namespace strata::py {

namespace {

// ---- modes

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(grad_enabled()); }
PyObject* set_grad_mode(PyObject*, PyObject* on) {
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  set_grad_enabled(value != 0);
  Py_RETURN_NONE;
}

// Inference mode: a saved state per nested scope, so that leaving restores what was.
std::vector<DispatchTls>& inference_scopes() {
  static thread_local std::vector<DispatchTls> scopes;
  return scopes;
}

PyObject* enter_inference(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    bool value = to_Bool(on);
    DispatchTls& tls = dispatch_tls;
    inference_scopes().push_back(tls);
    tls.inference = value;
    tls.grad_enabled = !value;
    KeySet keys(Key::Autograd);
    tls.exclude = value ? tls.exclude | keys : tls.exclude - keys;
    refresh_tls_mask();
    set_inference_tensors(value);
    Py_RETURN_NONE;
  });
}

PyObject* exit_inference(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    STRATA_CHECK(!inference_scopes().empty(), "inference_mode: exit without enter");
    DispatchTls before = inference_scopes().back();
    inference_scopes().pop_back();
    DispatchTls& tls = dispatch_tls;
    tls.inference = before.inference;
    tls.grad_enabled = before.grad_enabled;
    tls.exclude = before.exclude;
    refresh_tls_mask();
    set_inference_tensors(before.inference);
    Py_RETURN_NONE;
  });
}

PyObject* is_inference_mode(PyObject*, PyObject*) { return PyBool_FromLong(dispatch_tls.inference); }

// ---- the engine

// What this thread's innermost run is asked for.
struct RunInfo {
  int64_t id;
  const std::vector<Edge>* roots;
  const std::vector<Edge>* inputs;
  RunInfo* outer;
  std::unordered_set<Node*> will_run;  // filled when somebody asks
  bool filled = false;
};
thread_local RunInfo* current_info = nullptr;

// All nodes below the roots, or with inputs those from which an input can be reached.
void fill(RunInfo& info) {
  std::vector<Node*> todo;
  std::unordered_set<Node*> seen;
  std::unordered_map<Node*, std::vector<Node*>> users;
  for (const Edge& e : *info.roots)
    if (seen.insert(e.node.get()).second) todo.push_back(e.node.get());
  while (!todo.empty()) {
    Node* node = todo.back();
    todo.pop_back();
    for (const Edge& e : node->edges) {
      if (!e.valid()) continue;
      users[e.node.get()].push_back(node);
      if (seen.insert(e.node.get()).second) todo.push_back(e.node.get());
    }
  }
  info.filled = true;
  if (info.inputs->empty()) {
    info.will_run = std::move(seen);
    return;
  }
  for (const Edge& e : *info.inputs)
    if (seen.count(e.node.get()) && info.will_run.insert(e.node.get()).second) todo.push_back(e.node.get());
  while (!todo.empty()) {
    Node* node = todo.back();
    todo.pop_back();
    for (Node* user : users[node])
      if (info.will_run.insert(user).second) todo.push_back(user);
  }
}

PyObject* run_id(PyObject*, PyObject*) { return PyLong_FromLongLong(current_info ? current_info->id : -1); }

PyObject* will_run(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_node(o)) raise(PyExc_TypeError, "_will_engine_execute_node: expected a node, got " + type_name(o));
    STRATA_CHECK(current_info, "_will_engine_execute_node: no backward pass is running on this thread");
    if (!current_info->filled) fill(*current_info);
    return wrap(current_info->will_run.count(&node_of(o)) > 0);
  });
}

PyObject* is_selective(PyObject*, PyObject*) { return PyBool_FromLong(current_info && !current_info->inputs->empty()); }

PyObject* queue_callback(PyObject*, PyObject* fn) {
  return guarded([&]() -> PyObject* {
    queue_backward_callback([held = share(fn)] {
      HoldLock lock;
      call_object(held.get(), make_tuple().get());
    });
    Py_RETURN_NONE;
  });
}

// A tensor, or a GradientEdge: any tuple (node, output number, ...).
Edge edge_of(PyObject* o, const char* what) {
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    return needs_grad(t) ? gradient_edge(t) : Edge{};
  }
  if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 && is_node(PyTuple_GET_ITEM(o, 0)))
    return {Ref<Node>(&node_of(PyTuple_GET_ITEM(o, 0))), uint32_t(to_Int(PyTuple_GET_ITEM(o, 1)))};
  raise(PyExc_TypeError, str_cat(what, ": expected Tensor or GradientEdge, got ", type_name(o)));
}

// A NaN that the forward pass has made: said before its gradients spread it.
void check_roots(PyObject* tensors) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
    PyObject* o = PyTuple_GET_ITEM(tensors, i);
    if (!is_tensor(o) || !is_differentiable(tensor_of(o).dtype()) || tensor_of(o).is_meta()) continue;
    NoWatch inner;
    GradModeGuard off(false);
    const Tensor& t = tensor_of(o);
    if (t.keys().has(Key::Python) || !ops::item(ops::any(ops::isnan(t))).to_bool()) continue;
    std::string where = nan_origin(t);
    throw_error(ErrorKind::Runtime, str_cat("detect_anomaly: element ", i,
                                            " of tensors, from which backward begins, holds nan values already: ",
                                            "they come from the forward pass. ", where));
  }
}

struct RunArgs {
  PyObject *tensors, *grads, *inputs;
  int keep_graph, create_graph, allow_unused, accumulate, input_hooks;
};

PyObject* run(const RunArgs& a) {
  std::vector<Edge> roots, inputs;
  std::vector<Tensor> grads;
  Py_ssize_t n = PyTuple_GET_SIZE(a.tensors);
  STRATA_CHECK(PyTuple_GET_SIZE(a.grads) == n, "backward: got ", n, " tensors and ", PyTuple_GET_SIZE(a.grads),
               " gradients");
  if (anomaly_enabled() && anomaly_checks_nan()) check_roots(a.tensors);
  for (Py_ssize_t i = 0; i < n; ++i) {
    roots.push_back(edge_of(PyTuple_GET_ITEM(a.tensors, i), "tensors"));
    STRATA_CHECK(roots.back().valid(), "element ", i, " of tensors does not require grad and does not have a grad_fn");
    PyObject* grad = PyTuple_GET_ITEM(a.grads, i);
    if (grad != Py_None && !is_tensor(grad))
      raise(PyExc_TypeError,
            str_cat("element ", i, " of gradients tuple is not a Tensor or None, but ", type_name(grad)));
    grads.push_back(grad == Py_None ? Tensor() : tensor_of(grad));
    STRATA_CHECK(grads.back().defined(), "element ", i,
                 " of gradients tuple is None, but the corresponding Tensor requires grad");
  }
  Recording* recording = a.accumulate ? Recording::here() : nullptr;
  if (recording && a.inputs == Py_None) recording->check_backward({roots.data(), roots.size()});
  if (recording && !a.keep_graph) recording->note_backward({roots.data(), roots.size()});
  Py_ssize_t wanted = a.inputs == Py_None ? 0 : PyTuple_GET_SIZE(a.inputs);
  for (Py_ssize_t i = 0; i < wanted; ++i) {
    PyObject* o = PyTuple_GET_ITEM(a.inputs, i);
    inputs.push_back(is_tensor(o) && needs_grad(tensor_of(o)) ? wanted_edge(tensor_of(o)) : edge_of(o, "inputs"));
    STRATA_CHECK(inputs.back().valid(), "One of the differentiated Tensors does not require grad");
    if (recording) recording->check_accumulates(*inputs.back().node);
    if (a.accumulate && is_tensor(o)) retain_grad(tensor_of(o));
  }
  static std::atomic<int64_t> ids{0};
  RunInfo info{ids++, &roots, &inputs, current_info, {}};
  BackwardOptions options{a.keep_graph != 0, a.create_graph != 0, a.accumulate != 0, a.input_hooks != 0};
  std::vector<Tensor> found;
  {
    NoWatch formulas;
    ReleaseLock lock(true);
    struct Current {
      explicit Current(RunInfo* info) { current_info = info; }
      ~Current() { current_info = current_info->outer; }
    } current(&info);
    found = run_backward(roots, std::move(grads), inputs, options);
  }
  if (a.accumulate) Py_RETURN_NONE;
  Own result(checked(PyTuple_New(wanted)));
  for (Py_ssize_t i = 0; i < wanted; ++i) {
    STRATA_CHECK(found[size_t(i)].defined() || a.allow_unused, "The differentiated Tensor at index ", i,
                 " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
    PyTuple_SET_ITEM(result.get(), i, checked(wrap(found[size_t(i)])));
  }
  return result.release();
}

// _run_backward(tensors, grads, keep_graph, create_graph, inputs=None, allow_unused=False, accumulate=True,
// input_hooks=True)
PyObject* run_backward_py(PyObject*, PyObject* args) {
  RunArgs a{nullptr, nullptr, Py_None, 0, 0, 0, 1, 1};
  if (!PyArg_ParseTuple(args, "O!O!pp|Oppp", &PyTuple_Type, &a.tensors, &PyTuple_Type, &a.grads, &a.keep_graph,
                        &a.create_graph, &a.inputs, &a.allow_unused, &a.accumulate, &a.input_hooks))
    return nullptr;
  if (a.inputs != Py_None && !PyTuple_Check(a.inputs)) {
    PyErr_SetString(PyExc_TypeError, "_run_backward: inputs must be a tuple or None");
    return nullptr;
  }
  return guarded([&] { return run(a); });
}

PyObject* bump_version(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) raise(PyExc_TypeError, "increment_version: expected Tensor, got " + type_name(o));
    STRATA_CHECK(!tensor_of(o).impl()->inference_, "increment_version: an inference tensor keeps no version");
    tensor_of(o).bump_version("increment_version");
    Py_RETURN_NONE;
  });
}

// _get_accumulator(leaf): the node where a leaf's gradient arrives.
PyObject* get_gradient_node(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_tensor(o)) raise(PyExc_TypeError, "get_gradient_edge: expected Tensor, got " + type_name(o));
    STRATA_CHECK(needs_grad(tensor_of(o)),
                 "It is not possible to get the gradient edge for a Tensor that does not require "
                 "gradients");
    Edge edge = gradient_edge(tensor_of(o));
    return make_tuple(wrap_node(edge.node), wrap(int64_t(edge.input_nr))).release();
  });
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether operators are recorded on this thread."},
    {"_set_grad_enabled", set_grad_mode, METH_O, nullptr},
    {"_enter_inference_mode", enter_inference, METH_O, nullptr},
    {"_exit_inference_mode", exit_inference, METH_NOARGS, nullptr},
    {"is_inference_mode_enabled", is_inference_mode, METH_NOARGS, "Whether this thread is in inference mode."},
    {"_run_backward", run_backward_py, METH_VARARGS, nullptr},
    {"_current_graph_task_id", run_id, METH_NOARGS, nullptr},
    {"_will_engine_execute_node", will_run, METH_O, nullptr},
    {"_backward_is_selective", is_selective, METH_NOARGS, nullptr},
    {"_queue_backward_callback", queue_callback, METH_O, nullptr},
    {"_increment_version", bump_version, METH_O, nullptr},
    {"_gradient_edge", get_gradient_node, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_autograd(PyObject* module) {
  init_node(module);
  init_saved(module);
  init_hooks(module);
  init_function(module);
  init_autocast(module);
  init_anomaly(module);
  add_functions(module, functions);
}

}  // namespace strata::py
