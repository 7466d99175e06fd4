// Graphs: a capsule each.
#include "ir/graph.h"
#include "bind/dispatch/modes.h"
#include "bind/dispatch/stack.h"
#include "bind/tensor/tensor.h"
#include "jit/trace/recorder.h"

namespace strata::py {

namespace {

constexpr const char* kGraph = "strata.graph";

const ir::Graph& graph_of(PyObject* o) {
  auto* graph = static_cast<ir::Graph*>(PyCapsule_GetPointer(o, kGraph));
  if (!graph) throw PythonError();
  return *graph;
}

PyObject* tensor_list(TensorList tensors) {
  Own list(checked(PyList_New(Py_ssize_t(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), wrap(Tensor(tensors[i])));
  return list.release();
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
    Own capsule(checked(PyCapsule_New(new ir::Graph(std::move(graph)), kGraph, [](PyObject* o) {
      delete static_cast<ir::Graph*>(PyCapsule_GetPointer(o, kGraph));
    })));
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
  return guarded([&] {
    const std::string s = ir::print(graph_of(graph));
    return checked(PyUnicode_FromStringAndSize(s.data(), Py_ssize_t(s.size())));
  });
}

// _graph_captured(graph): the tensors that no recorded operator made.
PyObject* captured(PyObject*, PyObject* graph) {
  return guarded([&] { return tensor_list(graph_of(graph).captured); });
}

PyMethodDef functions[] = {{"_record", record, METH_VARARGS, nullptr},
                           {"_graph_run", run, METH_VARARGS, nullptr},
                           {"_graph_text", text, METH_O, nullptr},
                           {"_graph_captured", captured, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_record(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
