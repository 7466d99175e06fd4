// Captures and compiled graphs, for strata/_graph.py.
#include "jit/compiled.h"
#include "bind/dispatch/graph.h"
#include "bind/dispatch/stack.h"
#include "jit/joint/restore.h"
#include "jit/trace/recorder.h"
#include "run/copy.h"

namespace strata::py {

namespace {

constexpr const char* kRecording = "strata.recording";
constexpr const char* kPlan = "strata.plan";
constexpr const char* kCompiled = "strata.compiled";
using RecordingRef = std::unique_ptr<Recording>;
using PlanRef = std::shared_ptr<const jit::Plan>;
using CompiledRef = std::shared_ptr<jit::Compiled>;

Recording& recording_in(PyObject* o) {
  RecordingRef& r = in_capsule<RecordingRef>(o, kRecording);
  STRATA_CHECK(r, "graph: the recording has ended");
  return *r;
}

// _recording_begin(inputs, shapes=False, whole=False, open=False) -> recording: operators of this thread are recorded
// until it ends.
PyObject* begin(PyObject*, PyObject* args) {
  PyObject* inputs;
  int shapes = 0, whole = 0, open = 0;
  if (!PyArg_ParseTuple(args, "O|ppp", &inputs, &shapes, &whole, &open)) return nullptr;
  return guarded([&] {
    Own given(checked(PySequence_Tuple(inputs)));
    auto made = std::make_unique<Recording>(to_TensorList(given.get()), bool(shapes), bool(whole), bool(open));
    return wrap_capsule(std::move(made), kRecording);
  });
}

// _recording_input(recording, tensor): one more input, before an operator uses it
PyObject* also(PyObject*, PyObject* args) {
  PyObject *recording, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &recording, &tensor)) return nullptr;
  return guarded([&] {
    recording_in(recording).also(to_Tensor(tensor));
    return new_reference(Py_None).release();
  });
}

// _recording_known(recording, tensor) -> whether it is an input, was captured, or was made by a recorded operator
PyObject* known(PyObject*, PyObject* args) {
  PyObject *recording, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &recording, &tensor)) return nullptr;
  return guarded([&] { return PyBool_FromLong(recording_in(recording).known(to_Tensor(tensor))); });
}

// _recording_missed(recording) -> whether it ended in an error since a backward read what a composite operator had
// saved
PyObject* missed(PyObject*, PyObject* recording) {
  return guarded([&] { return PyBool_FromLong(recording_in(recording).missed()); });
}

// _unrecorded(function, args, kwargs) -> function(*args, **kwargs), whose operators are not recorded
PyObject* unrecorded(PyObject*, PyObject* args) {
  PyObject *function, *positional, *keywords;
  if (!PyArg_ParseTuple(args, "OO!O!", &function, &PyTuple_Type, &positional, &PyDict_Type, &keywords)) return nullptr;
  return guarded([&] {
    const ExcludeGuard below{KeySet(Key::Tracer)};
    return PyObject_Call(function, positional, keywords);
  });
}

// _recording_histories(recording) -> (whether a tensor from before got another history, whether one has a history)
PyObject* histories(PyObject*, PyObject* recording) {
  return guarded([&] {
    const Recording& r = recording_in(recording);
    return make_tuple(PyBool_FromLong(r.rewrote_history()), PyBool_FromLong(r.has_history())).release();
  });
}

// _recording_tangent(recording, like, name) -> a tensor of ones, laid out like that one, that is one more input
PyObject* tangent(PyObject*, PyObject* args) {
  PyObject *recording, *like;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOs", &recording, &like, &name)) return nullptr;
  return guarded([&] { return wrap(recording_in(recording).tangent(to_Tensor(like), name)); });
}

// _recording_seen(recording) -> (nodes so far, tensors captured so far)
PyObject* seen(PyObject*, PyObject* recording) {
  return guarded([&] {
    const ir::Graph& g = recording_in(recording).graph();
    return make_tuple(checked(PyLong_FromSize_t(g.body.nodes.size())), tensor_list(g.captured)).release();
  });
}

// _recording_take(recording, tensors): those from outside are captured.
PyObject* take(PyObject*, PyObject* args) {
  PyObject *recording, *tensors;
  if (!PyArg_ParseTuple(args, "OO", &recording, &tensors)) return nullptr;
  return guarded([&] {
    for (const Tensor& t : to_TensorList(tensors)) recording_in(recording).take(t);
    return new_reference(Py_None).release();
  });
}

// _recording_made(recording, tensor) -> whether a recorded operator made it
PyObject* made(PyObject*, PyObject* args) {
  PyObject *recording, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &recording, &tensor)) return nullptr;
  return guarded([&] { return PyBool_FromLong(recording_in(recording).made(to_Tensor(tensor))); });
}

// _recording_cleared(recording, tensor) -> whether its .grad was set to None meanwhile
PyObject* cleared(PyObject*, PyObject* args) {
  PyObject *recording, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &recording, &tensor)) return nullptr;
  return guarded([&] { return PyBool_FromLong(recording_in(recording).cleared(to_Tensor(tensor))); });
}

// _recording_spent(recording, tensor) -> whether a backward that was recorded has used up its history
PyObject* spent(PyObject*, PyObject* args) {
  PyObject *recording, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &recording, &tensor)) return nullptr;
  return guarded([&] { return PyBool_FromLong(recording_in(recording).is_spent(to_Tensor(tensor))); });
}

// _recording_slot(number) -> a 0-dim float64 tensor that no recorded operator made
PyObject* slot(PyObject*, PyObject* number) {
  return guarded([&] {
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    ExcludeGuard unrecorded{KeySet(Key::Tracer)};
    Tensor made = make_tensor({}, DType::F64);
    eager::fill_values(made, Scalar(value));
    return wrap(std::move(made));
  });
}

// _recording_bind(recording, {name: tensor}): float arguments of these names are read anew by each run
PyObject* bind(PyObject*, PyObject* args) {
  PyObject *recording, *slots;
  if (!PyArg_ParseTuple(args, "OO!", &recording, &PyDict_Type, &slots)) return nullptr;
  return guarded([&] {
    std::vector<std::pair<std::string, Tensor>> named;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(slots, &at, &key, &value);) {
      const char* name = PyUnicode_AsUTF8(key);
      if (!name) throw PythonError();
      named.emplace_back(name, to_Tensor(value));
    }
    recording_in(recording).bind(std::move(named));
    return new_reference(Py_None).release();
  });
}

// _recording_unbind(recording) -> the names that there were
PyObject* unbind(PyObject*, PyObject* recording) {
  return guarded([&] {
    Own list(checked(PyList_New(0)));
    for (const std::string& name : recording_in(recording).unbind()) {
      Own text(checked(PyUnicode_FromString(name.c_str())));
      if (PyList_Append(list.get(), text.get())) throw PythonError();
    }
    return list.release();
  });
}

// _recording_finish(recording, outputs) -> graph
PyObject* finish(PyObject*, PyObject* args) {
  PyObject *recording, *outputs;
  if (!PyArg_ParseTuple(args, "OO", &recording, &outputs)) return nullptr;
  return guarded([&] {
    ir::Graph graph = recording_in(recording).finish(to_OptTensorList(outputs));
    in_capsule<RecordingRef>(recording, kRecording).reset();
    return wrap_graph(std::move(graph));
  });
}

// _recording_stop(recording): ends it without a graph.
PyObject* stop(PyObject*, PyObject* recording) {
  return guarded([&] {
    in_capsule<RecordingRef>(recording, kRecording).reset();
    return new_reference(Py_None).release();
  });
}

// _recording_aside(function) -> function(), whose operators are not recorded and which may read values of tensors
PyObject* aside(PyObject*, PyObject* function) {
  ExcludeGuard guard{KeySet(Key::Tracer)};
  return PyObject_CallNoArgs(function);
}

// _compiled(graph, forward nodes, outputs, tangent_of, wanted, step): jit/compiled.h says what they are.
PyObject* compiled(PyObject*, PyObject* args) {
  PyObject *graph, *tangent_of, *wanted;
  Py_ssize_t nodes, outputs;
  int step;
  if (!PyArg_ParseTuple(args, "OnnOOp", &graph, &nodes, &outputs, &tangent_of, &wanted, &step)) return nullptr;
  return guarded([&] {
    jit::Captured c{graph_of(graph), size_t(nodes), size_t(outputs), ints(tangent_of), ints(wanted)};
    c.step = step;
    return wrap_capsule(std::make_shared<jit::Compiled>(std::move(c)), kCompiled);
  });
}

// _compiled_restored(graph, forward nodes, outputs, tangent_of, wanted, step): the same of a graph that a file gave,
// which is checked.
PyObject* restored(PyObject*, PyObject* args) {
  PyObject *graph, *tangent_of, *wanted;
  Py_ssize_t nodes, outputs;
  int step;
  if (!PyArg_ParseTuple(args, "OnnOOp", &graph, &nodes, &outputs, &tangent_of, &wanted, &step)) return nullptr;
  return guarded([&] {
    return wrap_capsule(std::make_shared<jit::Compiled>(
                            jit::restore(graph_of(graph), nodes, outputs, ints(tangent_of), ints(wanted), step)),
                        kCompiled);
  });
}

// _compiled_with(compiled, lines, fast) -> the same function, to be compiled so
PyObject* with_options(PyObject*, PyObject* args) {
  PyObject* o;
  int lines, fast;
  if (!PyArg_ParseTuple(args, "Opp", &o, &lines, &fast)) return nullptr;
  return guarded([&] {
    return wrap_capsule(in_capsule<CompiledRef>(o, kCompiled)->with({.lines = bool(lines), .fast = bool(fast)}),
                        kCompiled);
  });
}

// _compiled_forward(compiled) -> the forward alone, whose values are called as in the whole graph
PyObject* forward(PyObject*, PyObject* o) {
  return guarded([&] { return wrap_graph(in_capsule<CompiledRef>(o, kCompiled)->forward()); });
}

// A call, which gives the interpreter's lock to others where it is long.
std::vector<Tensor> called(jit::Compiled& c, std::vector<Tensor> inputs) {
  int64_t elements = 0;
  for (const Tensor& t : inputs) elements += elements_of(t);
  ReleaseLock lock(elements >= kLongWork || c.loops());
  return c.call(std::move(inputs));
}

// _compiled_call(compiled, inputs) -> outputs
PyObject* call(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    STRATA_CHECK_TYPE(count == 2, "_compiled_call: expected a compiled graph and its inputs");
    const CompiledRef c = in_capsule<CompiledRef>(args[0], kCompiled);
    return tensor_list(called(*c, to_TensorList(args[1])));
  });
}

// A compiled graph as it is called: the base of strata.CompiledGraph. Functions of tensors alone are called without
// Python's help, all others by the method _call.
struct Callable {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject* compiled;  // null: not of tensors alone
  long form;           // the result: a tensor (0), a tuple (1) or a list (2) of them, or None (3)
  PyObject* places;    // of each, which result of the graph it is, or -2 - i for its i-th input; None: as they are made
  PyObject* before;    // called before each call, without arguments; or null
};

// _plain(compiled, form, places, before=None): calls are of tensors alone.
PyObject* set_plain(PyObject* self, PyObject* args) {
  auto& own = *reinterpret_cast<Callable*>(self);
  PyObject *compiled, *places, *before = Py_None;
  long form;
  if (!PyArg_ParseTuple(args, "OlO|O", &compiled, &form, &places, &before)) return nullptr;
  return guarded([&] {
    in_capsule<CompiledRef>(compiled, kCompiled);
    STRATA_CHECK_TYPE(places == Py_None || PyTuple_Check(places), "_plain: expected places in a tuple, or None");
    own.form = form;
    Py_XSETREF(own.compiled, Py_NewRef(compiled));
    Py_XSETREF(own.places, Py_NewRef(places));
    Py_XSETREF(own.before, before == Py_None ? nullptr : Py_NewRef(before));
    return new_reference(Py_None).release();
  });
}

PyObject* run_plain(const Callable& own, PyObject* const* given, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (own.before) Own(checked(PyObject_CallNoArgs(own.before)));
    const CompiledRef& c = in_capsule<CompiledRef>(own.compiled, kCompiled);
    const long form = own.form;
    PyObject* places = own.places;
    std::vector<Tensor> inputs;
    inputs.reserve(size_t(count) + c->graph().captured.size());
    for (Py_ssize_t i = 0; i < count; ++i) {
      STRATA_CHECK_VALUE(is_tensor(given[i]), "graph: expected a tensor as argument ", i, ", as it was captured, got ",
                         Py_TYPE(given[i])->tp_name);
      inputs.push_back(tensor_of(given[i]));
    }
    std::vector<Tensor> results = called(*c, std::move(inputs));
    if (form == 3) return new_reference(Py_None).release();
    auto result = [&](Py_ssize_t i) {
      const Py_ssize_t place = places == Py_None ? i : PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
      const Py_ssize_t input = -2 - place;
      if (place < 0 && input >= 0 && input < count) return new_reference(given[input]).release();
      const std::vector<Tensor>& found = place >= 0 ? results : c->graph().captured;
      const size_t at = size_t(place >= 0 ? place : input - count);
      STRATA_CHECK_INDEX(at < found.size(), "graph: there is no result ", place);
      return wrap(found[at]);
    };
    if (form == 0) return result(0);
    if (places == Py_None) {
      Own list(tensor_list(results));
      return form == 2 ? list.release() : checked(PyList_AsTuple(list.get()));
    }
    Own list(checked(PyList_New(PyTuple_GET_SIZE(places))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); ++i) PyList_SET_ITEM(list.get(), i, result(i));
    return form == 2 ? list.release() : checked(PyList_AsTuple(list.get()));
  });
}

PyObject* vectorcall_compiled(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  auto& own = *reinterpret_cast<Callable*>(self);
  if (own.compiled && !names) return run_plain(own, args, PyVectorcall_NARGS(flags));
  static PyObject* const name = PyUnicode_InternFromString("_call");
  Own method(PyObject_GetAttr(self, name));
  return method ? PyObject_Vectorcall(method.get(), args, size_t(PyVectorcall_NARGS(flags)), names) : nullptr;
}

PyObject* new_compiled(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<Callable*>(self)->call = vectorcall_compiled;
  return self;
}

PyObject* call_compiled(PyObject* self, PyObject* args, PyObject* keywords) {
  auto& own = *reinterpret_cast<Callable*>(self);
  if (own.compiled && (!keywords || PyDict_GET_SIZE(keywords) == 0))
    return run_plain(own, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args));
  static PyObject* const name = PyUnicode_InternFromString("_call");
  Own method(PyObject_GetAttr(self, name));
  return method ? PyObject_Call(method.get(), args, keywords) : nullptr;
}

// `before` reaches optimisers, whose attributes may reach what is compiled of them.
int traverse_compiled(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<Callable*>(self)->before);
  return 0;
}

int clear_compiled(PyObject* self) {
  Py_CLEAR(reinterpret_cast<Callable*>(self)->before);
  return 0;
}

void dealloc_compiled(PyObject* self) {
  auto& own = *reinterpret_cast<Callable*>(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(own.compiled);
  Py_CLEAR(own.places);
  clear_compiled(self);
  Py_TYPE(self)->tp_free(self);
}

PyMethodDef callable_methods[] = {{"_plain", set_plain, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyTypeObject callable_type = {PyVarObject_HEAD_INIT(nullptr, 0) "strata._C._Compiled"};

// _compiled_interpret(compiled, inputs) -> outputs: operator by operator.
PyObject* interpret(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    STRATA_CHECK_TYPE(count == 2, "_compiled_interpret: expected a compiled graph and its inputs");
    return tensor_list(in_capsule<CompiledRef>(args[0], kCompiled)->interpret(to_TensorList(args[1])));
  });
}

std::string describe(const jit::Plan& p, std::string_view what) {
  return what == "source"              ? p.source(false)
         : what == "lines"             ? p.source(true)
         : what.starts_with("source ") ? p.source_for(std::string(what.substr(7)))
         : what == "explain"           ? p.explain()
         : what == "memory"            ? p.memory()
         : what == "launches"          ? p.launches()
         : what == "cache"             ? p.cache()
                                       : ir::print(p.graph());
}

// _compiled_text(compiled, what) -> [(name, text)]: of its plans, "source", "lines" (source with #line), "explain",
// "memory", "launches", "cache", "graph", or "source NAME" of a device's graph in the dialect of another device
PyObject* compiled_text(PyObject*, PyObject* args) {
  PyObject* o;
  const char* what;
  if (!PyArg_ParseTuple(args, "Os", &o, &what)) return nullptr;
  return guarded([&] {
    const CompiledRef c = in_capsule<CompiledRef>(o, kCompiled);
    std::vector<std::pair<std::string, const jit::Plan*>> plans;
    {
      ReleaseLock lock(true);
      plans = c->plans();
    }
    Own list(checked(PyList_New(0)));
    for (const auto& [name, plan] : plans) {
      const std::string text = describe(*plan, what);
      Own item(make_tuple(checked(PyUnicode_FromString(name.c_str())),
                          checked(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace"))));
      if (PyList_Append(list.get(), item.get())) throw PythonError();
    }
    return list.release();
  });
}

// _graph_compile(graph, fused) -> plan
PyObject* compile(PyObject*, PyObject* args) {
  PyObject* graph;
  int fused = 1;
  if (!PyArg_ParseTuple(args, "O|p", &graph, &fused)) return nullptr;
  return guarded([&] {
    const ir::Graph& g = graph_of(graph);
    PlanRef plan;
    {
      ReleaseLock lock(true);
      plan = std::make_shared<const jit::Plan>(g, jit::PlanOptions{.fused = bool(fused)});
    }
    return wrap_capsule(std::move(plan), kPlan);
  });
}

// _plan_run(plan, inputs) -> outputs
PyObject* run_plan(PyObject*, PyObject* args) {
  PyObject *plan, *list;
  if (!PyArg_ParseTuple(args, "OO", &plan, &list)) return nullptr;
  return guarded([&] {
    const PlanRef p = in_capsule<PlanRef>(plan, kPlan);
    std::vector<Tensor> params = to_TensorList(list);
    ir::check_inputs(p->graph(), params);
    params.insert(params.end(), p->graph().captured.begin(), p->graph().captured.end());
    return tensor_list(p->run(params));
  });
}

// _plan_text(plan, what)
PyObject* plan_text(PyObject*, PyObject* args) {
  PyObject* plan;
  const char* what;
  if (!PyArg_ParseTuple(args, "Os", &plan, &what)) return nullptr;
  return guarded([&] {
    const std::string s = describe(*in_capsule<PlanRef>(plan, kPlan), what);
    return checked(PyUnicode_DecodeUTF8(s.data(), Py_ssize_t(s.size()), "replace"));
  });
}

PyMethodDef functions[] = {{"_recording_begin", begin, METH_VARARGS, nullptr},
                           {"_recording_input", also, METH_VARARGS, nullptr},
                           {"_recording_known", known, METH_VARARGS, nullptr},
                           {"_unrecorded", unrecorded, METH_VARARGS, nullptr},
                           {"_recording_histories", histories, METH_O, nullptr},
                           {"_recording_tangent", tangent, METH_VARARGS, nullptr},
                           {"_recording_take", take, METH_VARARGS, nullptr},
                           {"_recording_seen", seen, METH_O, nullptr},
                           {"_recording_made", made, METH_VARARGS, nullptr},
                           {"_recording_cleared", cleared, METH_VARARGS, nullptr},
                           {"_recording_spent", spent, METH_VARARGS, nullptr},
                           {"_recording_slot", slot, METH_O, nullptr},
                           {"_recording_bind", bind, METH_VARARGS, nullptr},
                           {"_recording_unbind", unbind, METH_O, nullptr},
                           {"_recording_missed", missed, METH_O, nullptr},
                           {"_recording_finish", finish, METH_VARARGS, nullptr},
                           {"_recording_stop", stop, METH_O, nullptr},
                           {"_recording_aside", aside, METH_O, nullptr},
                           {"_compiled", compiled, METH_VARARGS, nullptr},
                           {"_compiled_restored", restored, METH_VARARGS, nullptr},
                           {"_compiled_with", with_options, METH_VARARGS, nullptr},
                           {"_compiled_forward", forward, METH_O, nullptr},
                           {"_compiled_call", reinterpret_cast<PyCFunction>(call), METH_FASTCALL, nullptr},
                           {"_compiled_interpret", reinterpret_cast<PyCFunction>(interpret), METH_FASTCALL, nullptr},
                           {"_compiled_text", compiled_text, METH_VARARGS, nullptr},
                           {"_graph_compile", compile, METH_VARARGS, nullptr},
                           {"_plan_run", run_plan, METH_VARARGS, nullptr},
                           {"_plan_text", plan_text, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_compiled(PyObject* module) {
  add_functions(module, functions);
  callable_type.tp_basicsize = sizeof(Callable);
  callable_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  callable_type.tp_traverse = traverse_compiled;
  callable_type.tp_clear = clear_compiled;
  callable_type.tp_vectorcall_offset = offsetof(Callable, call);
  callable_type.tp_new = new_compiled;
  callable_type.tp_dealloc = dealloc_compiled;
  callable_type.tp_call = call_compiled;
  callable_type.tp_methods = callable_methods;
  if (PyType_Ready(&callable_type)) throw PythonError();
  if (PyModule_AddObjectRef(module, "_Compiled", reinterpret_cast<PyObject*>(&callable_type))) throw PythonError();
}

}  // namespace strata::py
