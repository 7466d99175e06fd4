// The user's line for base/span.h: the code object and instruction of the running Python frame.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
// The frame's layout, so that no frame object has to be made for a mark.
#define Py_BUILD_CORE
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE
#define STRATA_HAS_FRAMES 1
#endif

#include <utility>
#include <vector>

#include "base/span.h"
#include "bind/types/types.h"

namespace strata::py {

namespace {

// Code objects that marks refer to; each is kept alive for ever. Open addressing, guarded by the interpreter lock.
class CodeSet {
 public:
  void keep(PyObject* code) {
    if (code == last_) return;
    last_ = code;
    size_t at = hash(code);
    while (slots_[at]) {
      if (slots_[at] == code) return;
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = Py_NewRef(code);
    if (++count_ * 2 > slots_.size()) grow();
  }

 private:
  size_t hash(PyObject* code) const { return (reinterpret_cast<uintptr_t>(code) >> 4) & (slots_.size() - 1); }
  void grow() {
    std::vector<PyObject*> old(slots_.size() * 2);
    old.swap(slots_);
    for (PyObject* code : old) {
      if (!code) continue;
      size_t at = hash(code);
      while (slots_[at]) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = code;
    }
  }
  std::vector<PyObject*> slots_ = std::vector<PyObject*>(1024);
  size_t count_ = 0;
  PyObject* last_ = nullptr;  // loops mark the same code over and over
};
CodeSet* kept;

// Frames that are executed by reading their bytecode (strata/_bytecode), which are none of the interpreter's: code
// objects and positions, the innermost first. Null as a rule.
using Executed = std::vector<std::pair<PyObject*, int>>;
thread_local Executed* executed = nullptr;

// What strata/_bytecode/emit.py calls the functions that it writes: a mark is of the line that called them, and they
// can go.
PyObject* stretch() {
  static PyObject* const name = PyUnicode_InternFromString("<stretch>");
  return name;
}

thread_local SourceMark called_from;  // while this thread has given the lock up

SourceMark take() {
  if (executed) {
    const auto& [code, position] = executed->front();
    kept->keep(code);
    return {code, int32_t(position)};
  }
  // Without the lock there is no Python frame to look at.
#ifdef STRATA_HAS_FRAMES
  PyThreadState* state = _PyThreadState_UncheckedGet();  // of the thread that holds the lock, whichever it is
  if (!state || state->thread_id != PyThread_get_thread_ident()) return called_from;
  _PyInterpreterFrame* frame = state->cframe ? state->cframe->current_frame : nullptr;
  while (frame && (_PyFrame_IsIncomplete(frame) || frame->f_code->co_name == stretch())) frame = frame->previous;
  if (!frame) return {};
  auto* code = reinterpret_cast<PyObject*>(frame->f_code);
  kept->keep(code);
  return {code, int32_t(_PyInterpreterFrame_LASTI(frame) * int(sizeof(_Py_CODEUNIT)))};
#else
  if (!PyGILState_Check()) return called_from;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (!frame) return {};
  auto* code = reinterpret_cast<PyObject*>(PyFrame_GetCode(frame));
  while (reinterpret_cast<PyCodeObject*>(code)->co_name == stretch()) {
    PyFrameObject* back = PyFrame_GetBack(frame);
    if (!back) break;
    Py_DECREF(frame);
    Py_DECREF(code);
    frame = back;
    code = reinterpret_cast<PyObject*>(PyFrame_GetCode(frame));
  }
  kept->keep(code);
  SourceMark mark{code, PyFrame_GetLasti(frame)};
  Py_DECREF(code);
  Py_DECREF(frame);
  return mark;
#endif
}

std::string text(SourceMark mark) {
  if (!Py_IsInitialized()) return "an unknown line (Python has ended)";
  PyGILState_STATE state = PyGILState_Ensure();
  auto* code = static_cast<PyCodeObject*>(const_cast<void*>(mark.code));
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* name = PyUnicode_AsUTF8(code->co_name);
  std::string result =
      str_cat(file ? file : "?", ":", PyCode_Addr2Line(code, mark.position), " in ", name ? name : "?");
  PyErr_Clear();
  PyGILState_Release(state);
  return result;
}

// The innermost frames of the user's, those of this package left out; where there are none, the innermost of all.
std::string chain() {
  constexpr int kFrames = 3;
  if (!Py_IsInitialized()) return {};
  if (executed) {
    std::string out;
    for (const auto& [code, position] : *executed)
      out += str_cat(out.empty() ? "" : " < ", text({code, int32_t(position)}));
    return out;
  }
  const PyGILState_STATE state = PyGILState_Ensure();  // a long operator of this thread may have let it go
  static const std::string own = [] {
    Own module(PyImport_ImportModule("strata"));
    Own file(module ? PyObject_GetAttrString(module.get(), "__file__") : nullptr);
    const char* path = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
    PyErr_Clear();
    const std::string s = path ? path : "";
    return s.substr(0, s.rfind('/') + 1);
  }();
  auto add = [](std::string& to, PyFrameObject* frame, const char* file, PyCodeObject* code) {
    const char* name = PyUnicode_AsUTF8(code->co_name);
    std::string line = str_cat(file ? file : "?", ":", PyFrame_GetLineNumber(frame), " in ", name ? name : "?");
    for (char& c : line)
      if (static_cast<unsigned char>(c) < ' ') c = '?';  // a graph's text has a line for it
    to += (to.empty() ? "" : " < ") + line;
  };
  std::string out, innermost;
  int count = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  for (bool first = true; frame && count < kFrames; first = false) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (file && (own.empty() || std::string_view(file).substr(0, own.size()) != own)) {
      add(out, frame, file, code);
      ++count;
    } else if (first) {
      add(innermost, frame, file, code);
    }
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  PyErr_Clear();
  PyGILState_Release(state);
  return out.empty() ? innermost : out;
}

// _executed_frames(((code, position), ...)): what marks and lines are of on this thread, from now on; () ends that.
PyObject* set_executed(PyObject*, PyObject* frames) {
  return guarded([&]() -> PyObject* {
    Executed now;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(frames); ++i) {
      PyObject* code;
      int position;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(frames, i), "O!i", &PyCode_Type, &code, &position)) throw PythonError();
      kept->keep(code);  // for ever, so that it is there as long as it is named here
      now.emplace_back(code, position);
    }
    delete std::exchange(executed, now.empty() ? nullptr : new Executed(std::move(now)));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_executed_frames", set_executed, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyThreadState* release_lock() {
  called_from = take();
  return PyEval_SaveThread();
}
void take_lock(PyThreadState* state) {
  PyEval_RestoreThread(state);
  called_from = {};
}

void init_source(PyObject* module) {
  add_functions(module, functions);
  kept = new CodeSet;
  set_source_provider({take, text, chain});
}

}  // namespace strata::py
