// Settings of the process: threads, seeds, the default dtype, memory statistics, the instruction set.
#include "bind/args/parse.h"
#include "bind/process/lock.h"
#include "bind/tensor/methods.h"
#include "core/allocator.h"
#include "core/factory_device.h"
#include "core/math.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "lower/source.h"
#include "run/kernels.h"
#include "run/space.h"
#include "vendor/fourier_host.h"
#include "vendor/lapack_host.h"
#include "vendor/library_host.h"

namespace strata::py {

namespace {

PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* set_threads(PyObject*, PyObject* n) {
  return guarded([&] {
    int64_t count = int_argument("set_num_threads", "num_threads", n);
    STRATA_CHECK(count > 0 && count < 100000, "set_num_threads expects a positive integer, got ", count);
    set_num_threads(int(count));
    Py_RETURN_NONE;
  });
}

PyObject* get_default(PyObject*, PyObject*) { return wrap(default_dtype()); }
PyObject* set_default(PyObject*, PyObject* d) {
  return guarded([&] {
    if (Py_TYPE(d) != dtype_type && !PyType_Check(d)) raise(PyExc_TypeError, "invalid dtype object");
    DType t = to_DType(d);
    STRATA_CHECK_TYPE(is_float(t), "only floating-point types are supported as the default type, got ", t);
    set_default_dtype(t);
    Py_RETURN_NONE;
  });
}

PyObject* memory_stats(PyObject*, PyObject*) {
  MemoryStats s = cpu_memory_stats();
  return Py_BuildValue("{s:K,s:K,s:K,s:K}", "live_bytes", s.live_bytes, "cached_bytes", s.cached_bytes, "peak_bytes",
                       s.peak_bytes, "allocations", s.allocations);
}
PyObject* reset_peak(PyObject*, PyObject*) {
  cpu_reset_peak();
  Py_RETURN_NONE;
}
PyObject* empty_cache(PyObject*, PyObject*) {
  cpu_empty_cache();
  Py_RETURN_NONE;
}

PyObject* get_isa(PyObject*, PyObject*) { return PyUnicode_FromString(eager::cpu_isa()); }
PyObject* set_isa(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) raise(PyExc_TypeError, "set_cpu_capability: expected 'base', 'v3' or 'v4'");
    eager::set_cpu_isa(std::string(to_Str(name)).c_str());
    Py_RETURN_NONE;
  });
}

PyObject* get_device(PyObject*, PyObject*) {
  return guarded([&] { return wrap(factory_device()); });
}
PyObject* set_device(PyObject*, PyObject* device) {
  return guarded([&] {
    set_factory_device(to_Device(device));
    Py_RETURN_NONE;
  });
}

PyObject* get_library(PyObject*, PyObject*) { return PyBool_FromLong(eager::library_enabled()); }
PyObject* set_library(PyObject*, PyObject* on) {
  return guarded([&] { return wrap(eager::set_library_enabled(to_Bool(on))); });
}
PyObject* report_library(PyObject*, PyObject*) {
  return guarded([&] { return checked(PyUnicode_FromString(eager::library_report().c_str())); });
}
PyObject* report_lapack(PyObject*, PyObject*) {
  return guarded([&] { return checked(PyUnicode_FromString(eager::lapack_report().c_str())); });
}
PyObject* report_fourier(PyObject*, PyObject*) {
  return guarded([&] { return checked(PyUnicode_FromString(eager::fourier_report().c_str())); });
}

PyObject* py_promote_types(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* v[2] = {};
    read_args("promote_types", {"type1", "type2"}, 2, v, args, n, kw, 2);
    return wrap(promote_types(to_DType(v[0]), to_DType(v[1])));
  });
}
PyObject* py_can_cast(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] {
    PyObject* v[2] = {};
    read_args("can_cast", {"from_", "to"}, 2, v, args, n, kw, 2);
    return wrap(can_cast(to_DType(v[0]), to_DType(v[1])));
  });
}
PyObject* result_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  static const Overloads overloads{"result_type", nullptr, 0};
  PyObject* asked = torch_function(overloads, nullptr, args, n, nullptr);
  if (asked || PyErr_Occurred()) return asked;
  return guarded([&] {
    if (n != 2) raise(PyExc_TypeError, str_cat("result_type() takes 2 tensors or numbers, got ", n, " arguments"));
    ResultType r;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (is_tensor(args[i]))
        r.add(tensor_of(args[i]));
      else if (is_number(args[i]))
        r.add(to_Scalar(args[i]));
      else
        raise(PyExc_TypeError,
              str_cat("result_type(): argument ", i + 1, " must be Tensor or Number, not ", Py_TYPE(args[i])->tp_name));
    }
    STRATA_CHECK_NOT_IMPLEMENTED(
        !r.is_complex_half(),
        "result_type(): float16 and complex numbers give complex32, which has no storage here; "
        "convert the float16 tensor with .float() first");
    return wrap(r.get());
  });
}

// _kernel_source(names, dtype, dialect): the text, the (first) function's name, and its parameters as
// (kind, index, part, dtype, name), kinds as in lower/print/print_nest.h.
PyObject* kernel_source(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* dialect;
    PyObject *given, *dtype;
    if (!PyArg_ParseTuple(args, "O!Os", &PyTuple_Type, &given, &dtype, &dialect)) return nullptr;
    std::vector<std::string> names;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(given, i));
      if (!name) throw PythonError();
      names.emplace_back(name);
    }
    const lower::KernelSource source = names.size() == 1 ? lower::kernel_source(names[0], to_DType(dtype), dialect)
                                                         : lower::kernel_sources(names, to_DType(dtype), dialect);
    Own parameters(checked(PyList_New(0)));
    for (const lower::NestParameter& p : source.parameters) {
      static constexpr const char* kinds[] = {"memory", "offset", "extent", "stride",
                                              "scalar", "begin",  "end",    "status"};
      Own item(
          checked(Py_BuildValue("siiss", kinds[p.kind], p.index, int(p.part), traits(p.type).name, p.name.c_str())));
      checked(PyList_Append(parameters.get(), item.get()));
    }
    return checked(Py_BuildValue("ssO", source.text.c_str(), source.symbol.c_str(), parameters.get()));
  });
}

// _space_source(family, dtypes): lower/source.h.
PyObject* space_source(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* family;
    PyObject* dtypes;
    if (!PyArg_ParseTuple(args, "sO!", &family, &PyTuple_Type, &dtypes)) return nullptr;
    uint32_t mask = 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(dtypes); ++k) mask |= 1u << int(to_DType(PyTuple_GET_ITEM(dtypes, k)));
    return PyUnicode_FromString(lower::space_source(family, mask).c_str());
  });
}

// _use_spaces(addresses): of StrataSpaceFile (run/space.h).
PyObject* use_spaces(PyObject*, PyObject* addresses) {
  return guarded([&]() -> PyObject* {
    std::vector<const StrataSpaceFile*> files;
    if (!PyTuple_Check(addresses)) raise(PyExc_TypeError, "_use_spaces() takes a tuple of addresses");
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(addresses); ++k) {
      files.push_back(static_cast<const StrataSpaceFile*>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses, k))));
      if (PyErr_Occurred()) return nullptr;
    }
    eager::use_spaces(files);
    Py_RETURN_NONE;
  });
}

PyObject* power(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) raise(PyExc_TypeError, str_cat("_power() takes a base and an exponent, got ", n, " arguments"));
    const double base = PyFloat_AsDouble(args[0]), exponent = PyFloat_AsDouble(args[1]);
    return PyErr_Occurred() ? nullptr : PyFloat_FromDouble(math::pow(base, exponent));
  });
}

template <auto F>
PyCFunction with_keywords() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(F));
}

PyMethodDef functions[] = {
    {"get_num_threads", get_threads, METH_NOARGS, "The number of threads that one operator may use."},
    {"set_num_threads", set_threads, METH_O, "Sets the number of threads that one operator may use."},
    {"get_default_dtype", get_default, METH_NOARGS, "The dtype of tensors made of floats: strata.float32 unless set."},
    {"set_default_dtype", set_default, METH_O, "Sets the dtype of tensors made of floats. TypeError for others."},
    {"_memory_stats", memory_stats, METH_NOARGS,
     "Bytes in use, cached and at the peak; calls that reached the system."},
    {"_reset_peak_memory", reset_peak, METH_NOARGS, "Makes the present use the peak."},
    {"_empty_cache", empty_cache, METH_NOARGS, "Gives cached memory back to the system."},
    {"cpu_capability", get_isa, METH_NOARGS, "The instruction set of the kernels: 'base', 'v3' or 'v4'."},
    {"set_cpu_capability", set_isa, METH_O, "Makes kernels use another instruction set that the machine has."},
    {"_get_default_device", get_device, METH_NOARGS, "Where this thread's factories make tensors unless told."},
    {"_set_default_device", set_device, METH_O, "Sets that."},
    {"_library_enabled", get_library, METH_NOARGS, "Whether products and convolutions may use the library."},
    {"_set_library_enabled", set_library, METH_O, "Lets them use it or not; returns what was set."},
    {"_fourier_report", report_fourier, METH_NOARGS,
     "The library of Fourier transforms and its version, or why there is none."},
    {"_lapack_report", report_lapack, METH_NOARGS, "LAPACK's name and version, or why there is none."},
    {"_library_report", report_library, METH_NOARGS, "The library's name and version, or why there is none."},
    {"_kernel_source", kernel_source, METH_VARARGS, "Text, symbol and parameters of a printed kernel."},
    {"_space_source", space_source, METH_VARARGS, "All space kernels of a family as C99."},
    {"_use_spaces", use_spaces, METH_O, "Runs other files of space kernels, at these addresses; () ends it."},
    {"_power", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(power)), METH_FASTCALL,
     "base ** exponent of floats, with the same bits on every machine."},
    {"promote_types", with_keywords<py_promote_types>(), METH_FASTCALL | METH_KEYWORDS,
     "promote_types(type1, type2)\n\nThe smallest dtype that both convert to."},
    {"can_cast", with_keywords<py_can_cast>(), METH_FASTCALL | METH_KEYWORDS,
     "can_cast(from_, to)\n\nWhether results of from_ may be written into to: its category is not lower."},
    {"result_type", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(result_type)), METH_FASTCALL,
     "result_type(a, b)\n\nThe dtype of an operator on these tensors or numbers."},
    {nullptr, nullptr, 0, nullptr},
};

// Runs the handlers of signals that came while an operator was at work; one that raises ends the operator. Python runs
// handlers on its main thread alone: on others this does nothing.
void run_signal_handlers() {
  if (!interpreter_alive()) return;
  HoldLock lock;
  if (!PyErr_Occurred() && PyErr_CheckSignals() < 0) throw PythonError();
}

}  // namespace

void init_runtime(PyObject* module) {
  set_interrupt_hook(run_signal_handlers);
  init_source(module);
  add_functions(module, functions);
}

}  // namespace strata::py
