// Arguments of generated Python entries: tables of signatures, the parser that fits a call to one of them, and the
// conversions between Python objects and C++ values. A failed fit raises TypeError with all candidates, as PyTorch's.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <initializer_list>
#include <string_view>
#include <tuple>

#include "core/generator.h"
#include "core/tensor.h"
#include "strata/generated/arg_kinds.h"

namespace strata::py {

struct ArgSpec {
  const char* name;
  ArgKind kind;
  bool has_default;
  bool keyword_only;
  bool empty_default;  // an empty list, which None asks for, too
  int list_size;       // of int[2]: one int stands for that many; -1: none
};

struct Signature {
  const char* text;  // "(Tensor input, Tensor other, *, Number alpha = 1)"
  const ArgSpec* args;
  int count;
  bool function, method;                        // callable in that form
  PyObject* (*invoke)(PyObject* const* slots);  // null slots take the default; C++ errors may be thrown
};

struct Prepared;  // what the parser works out at the first call: interned names, counts

struct Overloads {
  const char* name;
  const Signature* signatures;
  int count;
  bool numbers = false;  // a number may stand for a tensor where no overload takes it as a number
  mutable const Prepared* prepared = nullptr;
};

// One Python name: entries for METH_FASTCALL | METH_KEYWORDS, either may be null.
struct Entry {
  const char* name;
  PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
  PyObject* (*method)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
  const char* doc;
};
extern const Entry* const all_entries[];  // null-terminated; each list ends with an entry whose name is null

// Parses and calls. `self` is null for functions. Tensor subclasses with __torch_function__ are served first. C++
// errors become Python exceptions (null result).
PyObject* call(const Overloads& overloads, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// ---- from Python (throw Error or PythonError; the parser has checked the kinds)
const Tensor& to_Tensor(PyObject* o);
Tensor to_TensorOpt(PyObject* o);  // null or None: undefined
std::vector<Tensor> to_TensorList(PyObject* o);
std::vector<Tensor> to_OptTensorList(PyObject* o);  // None: undefined elements
int64_t to_Int(PyObject* o);                        // ints, objects with __index__, 0-dim integer tensors
std::optional<int64_t> to_IntOpt(PyObject* o);
// An item of a list of ints beyond 64 bits; the call of an entry says of which argument.
struct ItemError : Error {
  PyObject* list;  // to be compared only
  ItemError(PyObject* list, Py_ssize_t position);
};
// Own the numbers and convert to the borrowed views that operators take.
struct IntListValue {
  DimVec v;
  IntListValue() = default;
  IntListValue(std::initializer_list<int64_t> list) : v(list) {}
  operator IntArrayRef() const { return v; }
};
struct IntListOptValue {
  std::optional<DimVec> v;
  IntListOptValue() = default;
  IntListOptValue(std::nullopt_t) {}
  operator OptIntArrayRef() const { return v ? OptIntArrayRef(IntArrayRef(*v)) : std::nullopt; }
};
struct FloatListValue {
  std::vector<double> v;
  FloatListValue() = default;
  FloatListValue(std::initializer_list<double> list) : v(list) {}
  operator ArrayRef<double>() const { return v; }
};
IntListValue to_IntList(PyObject* o);
IntListOptValue to_IntListOpt(PyObject* o);
FloatListValue to_FloatList(PyObject* o);
double to_Float(PyObject* o);
std::optional<double> to_FloatOpt(PyObject* o);
bool to_Bool(PyObject* o);
std::optional<bool> to_BoolOpt(PyObject* o);
Scalar to_Scalar(PyObject* o);  // Python and NumPy numbers, 0-dim tensors
std::optional<Scalar> to_ScalarOpt(PyObject* o);
std::string_view to_Str(PyObject* o);
std::optional<std::string_view> to_StrOpt(PyObject* o);
DType to_DType(PyObject* o);  // strata.dtype, and float, int, bool, complex
std::optional<DType> to_DTypeOpt(PyObject* o);
Device to_Device(PyObject* o);  // strata.device or str
std::optional<Device> to_DeviceOpt(PyObject* o);
MemoryFormat to_Format(PyObject* o);
std::optional<MemoryFormat> to_FormatOpt(PyObject* o);
// Of a function that converts its own arguments; the error names it.
std::optional<MemoryFormat> format_argument(const char* function, PyObject* o);
Generator to_Generator(PyObject* o);
Tensor out_item(PyObject* tuple, int i, int count);  // out=(a, b)
Tensor pinned(const Tensor& t);                      // what its method pin_memory() gives
// A factory's dtype and device beside its out=: they must be out's; no dtype means out's.
void match_out(const Tensor& out, std::optional<DType>& dtype, const std::optional<Device>& device);

// ---- to Python: new references; throw PythonError on failure
PyObject* wrap(const Tensor& t);  // the same object each time for the same tensor; undefined: None
PyObject* wrap(Tensor&& t);
PyObject* wrap(const std::vector<Tensor>& list);  // a tuple
PyObject* wrap(int64_t v);
PyObject* wrap(double v);
PyObject* wrap(bool v);
PyObject* wrap(const Scalar& v);
PyObject* wrap(DType t);
PyObject* wrap(Device d);
template <class... T>
PyObject* wrap(const std::tuple<T...>& values) {
  PyObject* tuple = PyTuple_New(sizeof...(T));
  int i = 0;
  std::apply([&](const auto&... v) { (PyTuple_SET_ITEM(tuple, i++, wrap(v)), ...); }, values);
  return tuple;
}
// Named tuples such as strata.return_types.max.
PyTypeObject* make_struct_type(const std::string& name, ArrayRef<const char*> fields);
PyObject* finish_struct(PyTypeObject* type, PyObject* tuple);  // takes the tuple
template <class... T>
PyObject* wrap_struct(PyTypeObject* type, const std::tuple<T...>& values) {
  return finish_struct(type, wrap(values));
}

// Gives the interpreter lock up and takes it again. In between the line that called is what source marks name.
PyThreadState* release_lock();
void take_lock(PyThreadState* state);

// The interpreter lock, given up while a long operator runs.
class ReleaseLock {
 public:
  explicit ReleaseLock(bool release) : state_(release ? release_lock() : nullptr) {}
  ~ReleaseLock() { take(); }
  void take() {
    if (state_) take_lock(state_);
    state_ = nullptr;
  }

 private:
  PyThreadState* state_;
};

// Whether operators on these tensors run long enough to give the lock to other threads.
constexpr int64_t kLongWork = 32768;  // elements
inline int64_t elements_of(const Tensor& t) { return t.defined() ? t.numel() : 0; }
inline int64_t elements_of(const std::vector<Tensor>& list) {
  int64_t n = 0;
  for (const Tensor& t : list) n += elements_of(t);
  return n;
}
template <class... T>
bool work_of(const T&... tensors) {
  return (elements_of(tensors) + ...) >= kLongWork;
}

// A Python exception is set; thrown through C++ frames and left as it is at the boundary.
struct PythonError {};

// Turns the C++ exception in flight into a Python one.
// `op`: the operator at work, which the text names at its end unless it does so already.
void set_python_error(std::string_view op = {}) noexcept;

// Runs f at the boundary: returns its result, or null with the Python error set.
template <class F>
PyObject* guarded(F&& f, std::string_view op = {}) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error(op);
    return nullptr;
  }
}

}  // namespace strata::py
