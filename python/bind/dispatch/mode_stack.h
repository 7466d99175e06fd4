// The modes of a thread, which `with` enters and leaves.
#pragma once
#include <vector>

#include "bind/process/lock.h"

namespace strata::py {

// State is a thread's: `modes` (owned references, the innermost last), changed(), which is told of each change, and
// kClass, what a mode is called.
template <class State>
struct ModeStack {
  static State& state() {
    static thread_local State s;
    return s;
  }

  static PyObject* push(PyObject*, PyObject* mode) {
    state().modes.push_back(new_reference(mode).release());
    state().changed();
    Py_RETURN_NONE;
  }

  static PyObject* pop(PyObject*, PyObject*) {
    return guarded([&] {
      STRATA_CHECK(!state().modes.empty(), State::kClass, ": exit without enter");
      PyObject* mode = state().modes.back();
      state().modes.pop_back();
      state().changed();
      return mode;
    });
  }

  static PyObject* list(PyObject*, PyObject*) {
    return guarded([&] {
      Own list(checked(PyList_New(0)));
      for (PyObject* mode : state().modes) checked(PyList_Append(list.get(), mode));
      return list.release();
    });
  }

  // The innermost mode, off its stack while it handles a call.
  class Current {
   public:
    Current() : mode_(state().modes.back()) {
      state().modes.pop_back();
      state().changed();
    }
    ~Current() {
      state().modes.push_back(mode_);
      state().changed();
    }
    PyObject* get() const { return mode_; }

   private:
    PyObject* mode_;
  };
};

}  // namespace strata::py
