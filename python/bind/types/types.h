// The small types of the Python face: dtype, device, layout, memory format, Size, Generator, storage.
#pragma once
#include <string>

#include "bind/args/args.h"

namespace strata::py {

extern PyTypeObject* dtype_type;
extern PyTypeObject* device_type;
extern PyTypeObject* layout_type;
extern PyTypeObject* memory_format_type;
extern PyTypeObject* size_type;
extern PyTypeObject* generator_type;
extern PyTypeObject* storage_type;

struct PyDType {
  PyObject_HEAD;
  DType dtype;
};
struct PyDevice {
  PyObject_HEAD;
  Device device;
};
struct PyFormat {
  PyObject_HEAD;
  MemoryFormat format;
};
struct PyGenerator {
  PyObject_HEAD;
  Generator generator;
};
struct PyStorage {
  PyObject_HEAD;
  Ref<Storage> storage;
};

// New references.
PyObject* make_size(IntArrayRef sizes);    // strata.Size
PyObject* make_ints(IntArrayRef values);   // a tuple
PyObject* shown(const std::string& text);  // "strata.float32"; of another package where the process has said so
PyObject* wrap_format(MemoryFormat format);
PyObject* wrap_layout();
PyObject* wrap_generator(const Generator& generator);
PyObject* wrap_storage(const Ref<Storage>& storage);

// Each adds its names to the module.
void init_dtype(PyObject* module);
void init_device(PyObject* module);
void init_size(PyObject* module);
void init_generator(PyObject* module);
void init_storage(PyObject* module);
void init_errors(PyObject* module);
void init_source(PyObject* module);

// strata.OutOfMemoryError
extern PyObject* out_of_memory_error;
// strata.linalg.LinAlgError
extern PyObject* linalg_error;

// ---- small helpers of the bindings
// Makes a heap type from a spec and adds it to the module.
PyTypeObject* add_type(PyObject* module, PyType_Spec* spec, PyObject* base = nullptr);
void add_object(PyObject* module, const char* name, PyObject* object);  // takes the reference
void add_functions(PyObject* module, PyMethodDef* methods);
// Throws PythonError when `o` is null.
inline PyObject* checked(PyObject* o) {
  if (!o) throw PythonError();
  return o;
}
inline void checked(int status) {
  if (status < 0) throw PythonError();
}
// An owned reference.
class Own {
 public:
  explicit Own(PyObject* o = nullptr) : o_(o) {}
  Own(Own&& other) noexcept : o_(other.release()) {}
  Own& operator=(Own&& other) noexcept {
    std::swap(o_, other.o_);
    return *this;
  }
  Own(const Own&) = delete;
  ~Own() { Py_XDECREF(o_); }
  PyObject* get() const { return o_; }
  PyObject* release() {
    PyObject* o = o_;
    o_ = nullptr;
    return o;
  }
  explicit operator bool() const { return o_ != nullptr; }

 private:
  PyObject* o_;
};
// The text of a string; a lone surrogate, which UTF-8 lacks, as its escape.
std::string shown_text(PyObject* string);
// Sets a Python error of `type`. The text may quote what a file or a user gave: bytes that are no UTF-8 are escaped.
void set_error(PyObject* type, std::string_view text);
// The same, thrown.
[[noreturn]] void raise(PyObject* type, const std::string& text);
// The keyword and positional arguments of a hand-written function, by name: missing ones stay as they are.
// `names` lists all of them; those from `keyword_only` on must come by keyword. Throws PythonError.
void read_args(const char* function, std::initializer_list<const char*> names, int keyword_only, PyObject** values,
               PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, int required = 0);

extern PyObject* name_torch_function;      // "__torch_function__"
extern PyObject* disabled_torch_function;  // strata._C._disabled_torch_function_impl, once set

}  // namespace strata::py
