// Guards of compiled functions, as what asks them sees them.
#pragma once
#include "bind/tensor/tensor.h"

namespace strata::py {

// Values that guards have read and hand on, each with a reference of its own.
class Handed {
 public:
  Handed() = default;
  Handed(Handed&&) = default;
  Handed(const Handed&) = delete;
  ~Handed() {
    for (PyObject* o : values_) Py_DECREF(o);
  }
  void reserve(size_t count) { values_.reserve(count); }
  void add(PyObject* o) { values_.push_back(Py_NewRef(o)); }
  PyObject* const* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  std::vector<PyObject*> values_;
};

struct GuardsAnswer {
  bool hold;      // for these arguments, as far as it is known
  PyObject* run;  // where sizes are open: what to call, borrowed; null where these sizes are new
  Handed handed;
};
GuardsAnswer ask_guards(PyObject* guards, PyObject* const* args, Py_ssize_t count);
bool have_open_sizes(PyObject* guards);

void init_dispatcher(PyObject* module);
void init_noted(PyObject* module);

inline void add_type(PyObject* module, const char* name, PyTypeObject& type) {
  if (PyType_Ready(&type)) throw PythonError();
  if (PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(&type))) throw PythonError();
}

}  // namespace strata::py
