// The module strata._C: each area adds its names.
#include "bind/args/parse.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

namespace {

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "strata._C", "The C++ side of strata.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

PyObject* make_module() {
  int_pack_type.tp_basicsize = sizeof(IntPack);
  checked(PyType_Ready(&int_pack_type));
  Own module(checked(PyModule_Create(&definition)));
  init_tensor(module.get());
  init_functions(module.get());
  init_indexing(module.get());
  init_convert(module.get());
  init_runtime(module.get());
  init_autograd(module.get());
  init_library(module.get());
  init_modes(module.get());
  init_profiler(module.get());
  init_io(module.get());
  init_compile(module.get());
  init_devices(module.get());
  return module.release();
}

}  // namespace

}  // namespace strata::py

PyMODINIT_FUNC PyInit__C() {
  // Objects by the thousand, all of which stay.
  const bool collects = PyGC_Disable();
  PyObject* module = strata::py::guarded([] { return strata::py::make_module(); });
  if (collects) PyGC_Enable();
  return module;
}
