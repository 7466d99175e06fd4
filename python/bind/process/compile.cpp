// The compile service: its cache for strata.cache, and texts compiled by hand for tests.
#include "jit/service/compile.h"
#include "base/log.h"
#include "bind/args/args.h"
#include "bind/process/lock.h"
#include "bind/tensor/methods.h"
#include "jit/service/ahead.h"
#include "run/isa.h"

namespace strata::py {

namespace {

PyObject* dict_of(const jit::CacheStats& s) {
  return checked(Py_BuildValue("{sLsLsLsLsLsLsLsLsLsdsdss}", "memory_hits", (long long)s.memory_hits, "disk_hits",
                               (long long)s.disk_hits, "misses", (long long)s.misses, "evictions",
                               (long long)s.evictions, "refused", (long long)s.refused, "live", (long long)s.live,
                               "files", (long long)s.files, "bytes", (long long)s.bytes, "limit", (long long)s.limit,
                               "compile_ms", s.compile_ms, "load_ms", s.load_ms, "folder", s.folder.c_str()));
}

PyObject* stats(PyObject*, PyObject*) {
  return guarded([] {
    ReleaseLock released(true);
    jit::CacheStats s = jit::cache_stats();
    released.take();
    return dict_of(s);
  });
}
PyObject* clear(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    ReleaseLock released(true);
    jit::cache_clear();
    released.take();
    Py_RETURN_NONE;
  });
}
PyObject* report(PyObject*, PyObject*) {
  return guarded([] {
    ReleaseLock released(true);
    std::string text = jit::compiler_report();
    released.take();
    return PyUnicode_FromString(text.c_str());
  });
}

constexpr const char* kCapsule = "strata.Program";
void drop(PyObject* capsule) { delete static_cast<jit::ProgramRef*>(PyCapsule_GetPointer(capsule, kCapsule)); }

// (program, {name: address}, how, ms, compiler); addresses are good while the program lives.
PyObject* record(const jit::ProgramRef& program, const jit::Origin& origin) {
  auto held = std::make_unique<jit::ProgramRef>(program);
  Own capsule(checked(PyCapsule_New(held.get(), kCapsule, drop)));
  held.release();
  Own symbols(checked(PyDict_New()));
  for (const std::string& name : program->symbols()) {
    Own address(checked(PyLong_FromVoidPtr(program->symbol(name))));
    if (PyDict_SetItemString(symbols.get(), name.c_str(), address.get()) < 0) throw PythonError();
  }
  return checked(Py_BuildValue("OOsds", capsule.get(), symbols.get(), jit::how_name(origin.how), origin.ms,
                               program->compiler().c_str()));
}

// _compile_texts(texts, isa): a record for each, compiled in parallel.
PyObject* compile_texts(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* texts;
    const char* isa;
    if (!PyArg_ParseTuple(args, "O!s", &PyList_Type, &texts, &isa)) return nullptr;
    std::vector<jit::Request> requests;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(texts); ++k) {
      const char* text = PyUnicode_AsUTF8(PyList_GET_ITEM(texts, k));
      if (!text) return nullptr;
      requests.push_back({text, lower::Isa(eager::isa_index(isa))});
    }
    std::vector<jit::Origin> origins;
    std::vector<jit::ProgramRef> programs;
    {
      ReleaseLock released(true);
      programs = jit::compile_all(requests, &origins);
    }
    Own all(checked(PyList_New(0)));
    for (size_t k = 0; k < programs.size(); ++k) {
      Own one(record(programs[k], origins[k]));
      if (PyList_Append(all.get(), one.get()) < 0) return nullptr;
    }
    return all.release();
  });
}

PyObject* compile_text(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *text, *isa;
    if (!PyArg_ParseTuple(args, "ss", &text, &isa)) return nullptr;
    const jit::Request request{text, lower::Isa(eager::isa_index(isa))};
    jit::Origin origin;
    jit::ProgramRef program;
    {
      ReleaseLock released(true);
      program = jit::compile(request, &origin);
    }
    return record(program, origin);
  });
}

PyObject* finish_ahead(PyObject*, PyObject*) {
  jit::finish_ahead();
  Py_RETURN_NONE;
}

PyObject* choose_logs(PyObject*, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(names);
    if (!text) return nullptr;
    set_logs(text);
    Py_RETURN_NONE;
  });
}
PyObject* logs_named(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const char* s = PyUnicode_AsUTF8(name);
    if (!s) return nullptr;
    return PyBool_FromLong(logs(log_named(s)));
  });
}
PyObject* log_named_text(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *name, *text;
    if (!PyArg_ParseTuple(args, "ss", &name, &text)) return nullptr;
    write_log(log_named(name), text);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_set_logs", choose_logs, METH_O, "The compiler's logs that are on, with commas between."},
    {"_logs", logs_named, METH_O, "Whether the log of that name is on."},
    {"_log", log_named_text, METH_VARARGS, "_log(name, text)\n\nWrites lines of a log, on or off."},
    {"_cache_stats", stats, METH_NOARGS, "Counts of the compile service and the size of its folder."},
    {"_cache_clear", clear, METH_NOARGS, "Removes the compiled kernels on disk."},
    {"_compiler_report", report, METH_NOARGS, "What compiles kernels, or why nothing does."},
    {"_finish_ahead", finish_ahead, METH_NOARGS, "Waits until what a capture has begun to open is there."},
    {"_compile_text", compile_text, METH_VARARGS,
     "_compile_text(text, isa)\n\n(program, addresses by name, how, milliseconds, compiler)."},
    {"_compile_texts", compile_texts, METH_VARARGS, "_compile_texts(texts, isa)\n\nThe same of many, in parallel."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_compile(PyObject* module) {
  add_functions(module, functions);
  Py_AtExit(&jit::finish_ahead);
}

}  // namespace strata::py
