// PyTorch's names for programs in C++ that use them: tensors, operators, custom functions, operators of their own.
//
// PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) gives functions that strata.utils.cpp_extension.load() returns; their types
// are those that operators take (strata/library.h), and each is an operator of the namespace TORCH_EXTENSION_NAME.
#pragma once
#include "strata/function.h"
#include "strata/library.h"

namespace torch = strata;
namespace at = strata;
namespace c10 = strata;

#define TORCH_CHECK(...) STRATA_CHECK(__VA_ARGS__)
#define TORCH_LIBRARY(NAMESPACE, M) STRATA_LIBRARY(NAMESPACE, M)
#define TORCH_LIBRARY_FRAGMENT(NAMESPACE, M) STRATA_LIBRARY(NAMESPACE, M)
#define TORCH_LIBRARY_IMPL(NAMESPACE, KEY, M) STRATA_LIBRARY_IMPL(NAMESPACE, KEY, M)

namespace strata {

// What PYBIND11_MODULE's body is given.
class ExtensionModule {
 public:
  explicit ExtensionModule(Library& library) : library_(library) {}
  template <class F>
  ExtensionModule& def(const char* name, F function, const char* = "") {
    library_.def(name, function);
    return *this;
  }
  std::string& doc() { return doc_; }

 private:
  Library& library_;
  std::string doc_;
};

}  // namespace strata

#define STRATA_TEXT_OF(NAME) #NAME
#define STRATA_NAME_OF(NAME) STRATA_TEXT_OF(NAME)
#ifndef PYBIND11_MODULE
#define PYBIND11_MODULE(NAME, M)                                                                           \
  static void strata_extension(::strata::ExtensionModule& M);                                              \
  [[maybe_unused]] static const bool strata_extension_ran =                                                \
      ::strata::library::register_now(STRATA_NAME_OF(NAME), "", __FILE__, [](::strata::Library& library) { \
        ::strata::ExtensionModule module(library);                                                         \
        strata_extension(module);                                                                          \
      });                                                                                                  \
  static void strata_extension([[maybe_unused]] ::strata::ExtensionModule& M)
#endif

// A module that Python imports (CppExtension): its functions are the operators of the namespace of its name.
#ifdef STRATA_PYTHON_MODULE
#include <Python.h>
#define STRATA_JOINED(A, B) A##B
#define STRATA_JOIN(A, B) STRATA_JOINED(A, B)
PyMODINIT_FUNC STRATA_JOIN(PyInit_, TORCH_EXTENSION_NAME)() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   STRATA_NAME_OF(TORCH_EXTENSION_NAME),
                                   nullptr,
                                   -1,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  PyObject* made = PyModule_Create(&definition);
  PyObject* by = made ? PyImport_ImportModule("strata.utils.cpp_extension") : nullptr;
  PyObject* done = by ? PyObject_CallMethod(by, "fill_module", "O", made) : nullptr;
  Py_XDECREF(by);
  if (!done) Py_CLEAR(made);
  Py_XDECREF(done);
  return made;
}
#endif
