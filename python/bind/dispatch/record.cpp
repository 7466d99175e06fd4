// Recordings of operators, for tests: a tape is a capsule.
#include "dispatch/record.h"
#include "bind/dispatch/modes.h"
#include "bind/dispatch/stack.h"
#include "bind/tensor/tensor.h"

namespace strata::py {

namespace {

constexpr const char* kTape = "strata.tape";

const Tape& tape_of(PyObject* o) {
  auto* tape = static_cast<Tape*>(PyCapsule_GetPointer(o, kTape));
  if (!tape) throw PythonError();
  return *tape;
}

PyObject* tensor_list(TensorList tensors) {
  Own list(checked(PyList_New(Py_ssize_t(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), wrap(Tensor(tensors[i])));
  return list.release();
}

// _record(fn, inputs) -> (tape, outputs): the operators that fn(*inputs), which gives a list of tensors, runs.
PyObject* record(PyObject*, PyObject* args) {
  PyObject *fn, *list;
  if (!PyArg_ParseTuple(args, "OO", &fn, &list)) return nullptr;
  return guarded([&] {
    Own given(checked(PySequence_Tuple(list)));
    Recording recording(to_TensorList(given.get()));
    Own results = call_object(fn, given.get());
    Tape tape = recording.finish(to_OptTensorList(results.get()));
    Own capsule(checked(PyCapsule_New(new Tape(std::move(tape)), kTape,
                                      [](PyObject* o) { delete static_cast<Tape*>(PyCapsule_GetPointer(o, kTape)); })));
    return make_tuple(capsule.release(), results.release()).release();
  });
}

// _tape_replay(tape, inputs) -> outputs
PyObject* replay(PyObject*, PyObject* args) {
  PyObject *tape, *list;
  if (!PyArg_ParseTuple(args, "OO", &tape, &list)) return nullptr;
  return guarded([&] { return tensor_list(tape_of(tape).replay(to_TensorList(list))); });
}

// _tape_text(tape): the operators, a line each.
PyObject* text(PyObject*, PyObject* tape) {
  return guarded([&] {
    const std::string s = tape_of(tape).text();
    return checked(PyUnicode_FromStringAndSize(s.data(), Py_ssize_t(s.size())));
  });
}

// _tape_captured(tape): the tensors that no recorded operator made.
PyObject* captured(PyObject*, PyObject* tape) {
  return guarded([&] { return tensor_list(tape_of(tape).captured()); });
}

PyMethodDef functions[] = {{"_record", record, METH_VARARGS, nullptr},
                           {"_tape_replay", replay, METH_VARARGS, nullptr},
                           {"_tape_text", text, METH_O, nullptr},
                           {"_tape_captured", captured, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_record(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
