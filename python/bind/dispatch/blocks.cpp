// Control flow in recordings, for strata/_control_flow.py; and graphs made anew for other shapes.
#include "bind/dispatch/graph.h"
#include "bind/dispatch/stack.h"
#include "dispatch/info.h"
#include "dispatch/seen.h"
#include "ir/effect.h"
#include "jit/trace/instantiate.h"
#include "jit/trace/recorder.h"

namespace strata::py {

namespace {

constexpr const char* kBlock = "strata.block";

Recording& here() {
  Recording* r = Recording::here();
  STRATA_CHECK(r, "cond: no operators are recorded on this thread");
  return *r;
}

// _recording() -> None where no operators are recorded on this thread, else whether they run over shapes alone, and
// whether composites are whole
PyObject* recording(PyObject*, PyObject*) {
  if (!Recording::here() || !recording_here()) Py_RETURN_NONE;
  const Recording& r = *Recording::here();
  return Py_BuildValue("OO", r.over_shapes() ? Py_True : Py_False, r.whole() ? Py_True : Py_False);
}

// _block_reads(block) -> the tensors from outside of it that it reads
PyObject* reads(PyObject*, PyObject* block) {
  return guarded([&] { return tensor_list(here().read_by(in_capsule<ir::Block>(block, kBlock))); });
}

// _block_begin(carried=None) -> the tensors that the block is given in the place of what is carried
PyObject* begin(PyObject*, PyObject* args) {
  PyObject* carried = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &carried)) return nullptr;
  return guarded([&] {
    here().begin_block();
    return tensor_list(carried == Py_None ? std::vector<Tensor>() : here().block_params(to_TensorList(carried)));
  });
}

// _block_end(results) -> block
PyObject* end(PyObject*, PyObject* results) {
  return guarded([&] { return wrap_capsule(here().end_block(to_TensorList(results)), kBlock); });
}

// _block_drop(): after an error
PyObject* drop(PyObject*, PyObject*) {
  return guarded([&] {
    here().drop_block();
    return new_reference(Py_None).release();
  });
}

// _block_if(pred, block, block, values) -> results. values: of a run, where the recording computes.
PyObject* branch(PyObject*, PyObject* args) {
  PyObject *pred, *yes, *no, *values;
  if (!PyArg_ParseTuple(args, "OOOO", &pred, &yes, &no, &values)) return nullptr;
  return guarded([&] {
    return tensor_list(here().branch(to_Tensor(pred), in_capsule<ir::Block>(yes, kBlock),
                                     in_capsule<ir::Block>(no, kBlock), to_TensorList(values)));
  });
}

// _block_loop(going, carried, block, values) -> results
PyObject* loop(PyObject*, PyObject* args) {
  PyObject *going, *carried, *body, *values;
  if (!PyArg_ParseTuple(args, "OOOO", &going, &carried, &body, &values)) return nullptr;
  return guarded([&] {
    return tensor_list(here().loop(to_Tensor(going), to_TensorList(carried), in_capsule<ir::Block>(body, kBlock),
                                   to_TensorList(values)));
  });
}

// _graph_instantiate(graph, inputs=None) -> the graph whose composite operators fell apart, for the types of its inputs
// or for these tensors
PyObject* instantiated(PyObject*, PyObject* args) {
  PyObject *graph, *inputs = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &graph, &inputs)) return nullptr;
  return guarded([&] {
    const ir::Graph& g = graph_of(graph);
    return wrap_graph(instantiate(g, inputs == Py_None ? inputs_like(g) : to_TensorList(inputs)));
  });
}

// _recording_value(tensor) -> the number of its value in this thread's recording, or -1
PyObject* value(PyObject*, PyObject* tensor) {
  return guarded([&] {
    const Recording* r = Recording::here();
    return PyLong_FromLong(r ? r->number(to_Tensor(tensor)) : -1);
  });
}

// _recording_count() -> how many values this thread's recording has
PyObject* count(PyObject*, PyObject*) {
  return guarded([&] { return PyLong_FromSize_t(here().graph().values.size()); });
}

// _recording_may_raise(first) -> (how many nodes this thread's recording has, whether one from `first` on may raise by
// values of tensors, whether one of these draws random numbers or is not of the table)
PyObject* may_raise(PyObject*, PyObject* first) {
  return guarded([&] {
    const std::vector<ir::Node>& nodes = here().graph().body.nodes;
    bool raises = false, draws = false;
    for (size_t i = size_t(to_Int(first)); i < nodes.size(); ++i) {
      if (nodes[i].op && !ir::has_effect(*nodes[i].op)) continue;
      const std::optional<OpInfo> said = nodes[i].op ? info(*nodes[i].op) : std::nullopt;
      auto acts = [&](const char* how) { return said->acts.find(how) != said->acts.npos; };
      raises |= !said || acts("raises");
      draws |= !said || acts("draws");
    }
    return Py_BuildValue("nOO", Py_ssize_t(nodes.size()), raises ? Py_True : Py_False, draws ? Py_True : Py_False);
  });
}

// _graph_results(graph) -> the type of each result of the body, as text
PyObject* results(PyObject*, PyObject* graph) {
  return guarded([&] {
    const ir::Graph& g = graph_of(graph);
    Own list(checked(PyList_New(0)));
    for (ir::Id v : g.body.results) {
      const std::string type = v == ir::kNone ? "None" : ir::to_string(g.values[size_t(v)].type);
      Own text(checked(PyUnicode_FromString(type.c_str())));
      if (PyList_Append(list.get(), text.get())) throw PythonError();
    }
    return list.release();
  });
}

// _type_text(tensor): its type as graphs print it
PyObject* type_text(PyObject*, PyObject* tensor) {
  return guarded([&] { return checked(PyUnicode_FromString(ir::to_string(ir::type_of(to_Tensor(tensor))).c_str())); });
}

PyMethodDef functions[] = {{"_recording", recording, METH_NOARGS, nullptr},
                           {"_block_begin", begin, METH_VARARGS, nullptr},
                           {"_block_end", end, METH_O, nullptr},
                           {"_block_reads", reads, METH_O, nullptr},
                           {"_block_drop", drop, METH_NOARGS, nullptr},
                           {"_block_if", branch, METH_VARARGS, nullptr},
                           {"_block_loop", loop, METH_VARARGS, nullptr},
                           {"_recording_may_raise", may_raise, METH_O, nullptr},
                           {"_graph_instantiate", instantiated, METH_VARARGS, nullptr},
                           {"_recording_value", value, METH_O, nullptr},
                           {"_recording_count", count, METH_NOARGS, nullptr},
                           {"_graph_results", results, METH_O, nullptr},
                           {"_type_text", type_text, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_blocks(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
