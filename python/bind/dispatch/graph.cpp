// Graphs: recordings, texts, checks.
#include "bind/dispatch/graph.h"
#include "bind/dispatch/modes.h"
#include "bind/dispatch/stack.h"
#include "ir/draw.h"
#include "ir/effect.h"
#include "ir/parse.h"
#include "ir/part.h"
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

// _graph_name(graph, names): what its parameters are called, for people; None leaves a name.
PyObject* name(PyObject*, PyObject* args) {
  PyObject *graph, *names;
  if (!PyArg_ParseTuple(args, "OO!", &graph, &PyList_Type, &names)) return nullptr;
  return guarded([&] {
    ir::Graph& g = in_capsule<ir::Graph>(graph, kGraph);
    STRATA_CHECK_VALUE(size_t(PyList_GET_SIZE(names)) == g.body.params.size(), "_graph_name: expected ",
                       g.body.params.size(), " names");
    for (size_t i = 0; i < g.body.params.size(); ++i) {
      PyObject* name = PyList_GET_ITEM(names, Py_ssize_t(i));
      if (name == Py_None) continue;
      const char* text = PyUnicode_AsUTF8(name);
      if (!text) throw PythonError();
      g.values[size_t(g.body.params[i])].name = text;
    }
    return new_reference(Py_None).release();
  });
}

Own id_list(const std::vector<ir::Id>& ids) {
  Own list(checked(PyList_New(0)));
  for (ir::Id v : ids) {
    Own id(checked(PyLong_FromLong(v)));
    if (PyList_Append(list.get(), id.get())) throw PythonError();
  }
  return list;
}

// _graph_nodes(graph) -> ([(value, name, type) of each parameter], [(operator, results, type of the first, what it
// reads, span) of each node of the body])
PyObject* nodes(PyObject*, PyObject* graph) {
  return guarded([&] {
    const ir::Graph& g = graph_of(graph);
    auto type = [&](ir::Id v) {
      return v == ir::kNone ? std::string("None") : ir::to_string(g.values[size_t(v)].type);
    };
    Own params(checked(PyList_New(0))), list(checked(PyList_New(0)));
    for (ir::Id v : g.body.params) {
      Own item(make_tuple(checked(PyLong_FromLong(v)), to_text(g.values[size_t(v)].name), to_text(type(v))));
      if (PyList_Append(params.get(), item.get())) throw PythonError();
    }
    for (const ir::Node& n : g.body.nodes) {
      std::vector<ir::Id> reads;
      ir::each_use(n, [&](ir::Id v) { reads.push_back(v); });
      static constexpr const char* kinds[] = {"", "constant", "if", "loop", "check"};
      Own item(make_tuple(to_text(n.kind == ir::Node::Call ? n.op->name : kinds[n.kind]), id_list(n.results).release(),
                          to_text(n.results.empty() ? "None" : type(n.results[0])), id_list(reads).release(),
                          to_text(n.span)));
      if (PyList_Append(list.get(), item.get())) throw PythonError();
    }
    return make_tuple(params.release(), list.release()).release();
  });
}

// _graph_written(graph) -> the places of the parameters that it writes, also through views of them
PyObject* written(PyObject*, PyObject* graph) {
  return guarded([&] {
    const ir::Graph& g = graph_of(graph);
    const ir::Memory memory(g, true);
    std::vector<ir::Id> places;
    for (size_t p = 0; p < g.body.params.size(); ++p)
      if (memory.written(g.body.params[p])) places.push_back(ir::Id(p));
    return id_list(places).release();
  });
}

// _graph_part(graph, params, fed values, their tensors, fetched values or None) -> tensors
PyObject* part(PyObject*, PyObject* args) {
  PyObject *graph, *params, *fed, *tensors, *fetched;
  if (!PyArg_ParseTuple(args, "OOOOO", &graph, &params, &fed, &tensors, &fetched)) return nullptr;
  return guarded([&] {
    const std::vector<int> places = ints(fed);
    const std::vector<Tensor> given = to_TensorList(tensors);
    STRATA_CHECK_VALUE(places.size() == given.size(), "_graph_part: expected a tensor for each fed value");
    std::vector<ir::Feed> feed;
    for (size_t i = 0; i < places.size(); ++i) feed.emplace_back(places[i], given[i]);
    const bool whole = fetched == Py_None;
    const std::vector<int> fetch = whole ? std::vector<int>{} : ints(fetched);
    return tensor_list(ir::run_part(graph_of(graph), to_OptTensorList(params), {feed.data(), feed.size()},
                                    {fetch.data(), fetch.size()}, whole));
  });
}

PyMethodDef functions[] = {{"_record", record, METH_VARARGS, nullptr},
                           {"_graph_run", run, METH_VARARGS, nullptr},
                           {"_graph_text", text, METH_O, nullptr},
                           {"_graph_captured", captured, METH_O, nullptr},
                           {"_graph_parse", parse, METH_VARARGS, nullptr},
                           {"_graph_verify", verify, METH_VARARGS, nullptr},
                           {"_graph_pass", pass, METH_VARARGS, nullptr},
                           {"_graph_draw", draw, METH_O, nullptr},
                           {"_graph_name", name, METH_VARARGS, nullptr},
                           {"_graph_nodes", nodes, METH_O, nullptr},
                           {"_graph_part", part, METH_VARARGS, nullptr},
                           {"_graph_written", written, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_record(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
