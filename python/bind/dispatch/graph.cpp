// Graphs: recordings, texts, checks.
#include "bind/dispatch/graph.h"
#include "bind/dispatch/modes.h"
#include "bind/dispatch/stack.h"
#include "ir/draw.h"
#include "ir/parse.h"
#include "ir/pass.h"
#include "ir/verify.h"
#include "jit/trace/recorder.h"

namespace strata::py {

namespace {

PyObject* to_text(std::string_view s) {
  return checked(PyUnicode_DecodeUTF8(s.data(), Py_ssize_t(s.size()), "replace"));
}

// _record(fn, inputs) -> (graph, outputs): the operators that fn(*inputs), which gives a list of tensors, runs.
PyObject* record(PyObject*, PyObject* args) {
  PyObject *fn, *list;
  if (!PyArg_ParseTuple(args, "OO", &fn, &list)) return nullptr;
  return guarded([&] {
    Own given(checked(PySequence_Tuple(list)));
    Recording recording(to_TensorList(given.get()));
    Own results = call_object(fn, given.get());
    ir::Graph graph = recording.finish(to_OptTensorList(results.get()));
    Own capsule(wrap_graph(std::move(graph)));
    return make_tuple(capsule.release(), results.release()).release();
  });
}

// _graph_run(graph, inputs) -> outputs
PyObject* run(PyObject*, PyObject* args) {
  PyObject *graph, *list;
  if (!PyArg_ParseTuple(args, "OO", &graph, &list)) return nullptr;
  return guarded([&] { return tensor_list(ir::run(graph_of(graph), to_TensorList(list))); });
}

// _graph_text(graph)
PyObject* text(PyObject*, PyObject* graph) {
  return guarded([&] { return to_text(ir::print(graph_of(graph))); });
}

// _graph_captured(graph): the tensors that no recorded operator made.
PyObject* captured(PyObject*, PyObject* graph) {
  return guarded([&] { return tensor_list(graph_of(graph).captured); });
}

// _graph_parse(text, captured) -> graph
PyObject* parse(PyObject*, PyObject* args) {
  const char* text;
  Py_ssize_t size;
  PyObject* list;
  if (!PyArg_ParseTuple(args, "s#O", &text, &size, &list)) return nullptr;
  return guarded([&] { return wrap_graph(ir::parse({text, size_t(size)}, to_TensorList(list))); });
}

// _graph_verify(graph, functional): raises where it breaks the spec.
PyObject* verify(PyObject*, PyObject* args) {
  PyObject* graph;
  int functional;
  if (!PyArg_ParseTuple(args, "Op", &graph, &functional)) return nullptr;
  return guarded([&] {
    ir::verify(graph_of(graph), functional ? ir::Stage::Functional : ir::Stage::Captured);
    return new_reference(Py_None).release();
  });
}

// _graph_pass(graph, name) -> (another graph, log)
PyObject* pass(PyObject*, PyObject* args) {
  PyObject* graph;
  const char* name;
  if (!PyArg_ParseTuple(args, "Os", &graph, &name)) return nullptr;
  return guarded([&] {
    ir::Graph changed = graph_of(graph);
    ir::PassLog log;
    ir::run_passes(changed, {&ir::pass_named(name), 1}, log);
    Own capsule(wrap_graph(std::move(changed)));
    return make_tuple(capsule.release(), to_text(log.text())).release();
  });
}

// _graph_draw(graph): SVG
PyObject* draw(PyObject*, PyObject* graph) {
  return guarded([&] { return to_text(ir::draw(graph_of(graph))); });
}

PyMethodDef functions[] = {{"_record", record, METH_VARARGS, nullptr},
                           {"_graph_run", run, METH_VARARGS, nullptr},
                           {"_graph_text", text, METH_O, nullptr},
                           {"_graph_captured", captured, METH_O, nullptr},
                           {"_graph_parse", parse, METH_VARARGS, nullptr},
                           {"_graph_verify", verify, METH_VARARGS, nullptr},
                           {"_graph_pass", pass, METH_VARARGS, nullptr},
                           {"_graph_draw", draw, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_record(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
