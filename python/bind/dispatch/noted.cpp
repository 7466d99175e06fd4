// Calls that note which functions of Python they begin, so that a capture knows what they may have read
// (strata/_bytecode/library.py).
#include <unordered_set>

#include "bind/dispatch/graph.h"
#include "bind/dispatch/guards.h"

namespace strata::py {

namespace {

// While it lives, this thread's calls are noted. A profiler of the program's gets its events, too.
class Noting {
 public:
  Noting() {
    const PyThreadState* thread = PyThreadState_Get();
    before_ = thread->c_profilefunc;
    before_object_ = Own(Py_XNewRef(thread->c_profileobj));
    found_ = Own(checked(PyList_New(0)));
    const Own self(checked(PyCapsule_New(this, kName, nullptr)));
    PyEval_SetProfile(note, self.get());
  }
  ~Noting() { PyEval_SetProfile(before_, before_object_.get()); }
  Noting(const Noting&) = delete;
  Noting& operator=(const Noting&) = delete;

  PyObject* found() const { return found_.get(); }

 private:
  static constexpr const char* kName = "strata.noting";
  Py_tracefunc before_;
  Own before_object_, found_;  // a list of (code, globals)
  std::unordered_set<PyObject*> seen_;

  static int note(PyObject* self, PyFrameObject* frame, int what, PyObject* arg) {
    auto& own = *static_cast<Noting*>(PyCapsule_GetPointer(self, kName));
    if (what == PyTrace_CALL) {
      const Own code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
      if (own.seen_.insert(code.get()).second) {
        const Own globals(PyFrame_GetGlobals(frame)), both(PyTuple_Pack(2, code.get(), globals.get()));
        if (!both.get() || PyList_Append(own.found_.get(), both.get()) < 0) return -1;
      }
    }
    return own.before_ ? own.before_(own.before_object_.get(), frame, what, arg) : 0;
  }
};

// _noted_call(function, args, kwargs) -> (what it gives, [(code, globals)]): each function of Python once that began
// meanwhile
PyObject* noted_call(PyObject*, PyObject* args) {
  PyObject *function, *positional, *keywords;
  if (!PyArg_ParseTuple(args, "OO!O!", &function, &PyTuple_Type, &positional, &PyDict_Type, &keywords)) return nullptr;
  return guarded([&]() -> PyObject* {
    Own result, found;
    {
      const Noting noting;
      result = Own(PyObject_Call(function, positional, keywords));
      found = Own(Py_NewRef(noting.found()));
    }
    if (!result.get()) throw PythonError();
    return checked(PyTuple_Pack(2, result.get(), found.get()));
  });
}

PyMethodDef functions[] = {{"_noted_call", noted_call, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_noted(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
