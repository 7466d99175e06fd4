// Devices of plugins: loading them, their memory and queues, and the ledger of what they lack.
#include "bind/process/devices.h"

#include "bind/args/parse.h"
#include "bind/types/types.h"
#include "core/generator.h"
#include "device/fallback.h"
#include "device/texts.h"

namespace strata::py {

device::Unit& unit_of(PyObject* o) {
  const Device d = to_Device(o);
  STRATA_CHECK_VALUE(device::plugin_of(d.type), "expected a device of a plugin, got ", d);
  return device::unit(d);
}

namespace {

PyObject* load(PyObject*, PyObject* path) {
  return guarded([&] {
    const std::string file(to_Str(path));
    const device::Plugin* plugin;
    {
      const ReleaseLock free(true);
      plugin = &device::load(file);
    }
    return checked(PyUnicode_FromString(plugin->table->name));
  });
}

PyObject* plugins(PyObject*, PyObject*) {
  return guarded([] {
    Own list(checked(PyList_New(0)));
    for (const device::Plugin* p : device::plugins()) {
      Own row(checked(Py_BuildValue("sssi", p->table->name, p->table->version, p->path.c_str(), device::count(*p))));
      checked(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

// Why a plugin has no devices, in its own words.
PyObject* reason(PyObject*, PyObject* name) {
  return guarded([&] {
    const std::string type(to_Str(name));
    for (const device::Plugin* p : device::plugins())
      if (p->table->name == type && device::count(*p) == 0)
        return checked(PyUnicode_FromString(p->table->last_error()));
    return checked(PyUnicode_FromString(""));
  });
}

// What a plugin may leave out, and whether it is there.
PyObject* parts(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const std::string type(to_Str(name));
    for (const device::Plugin* p : device::plugins()) {
      const StrataDevice& t = *p->table;
      if (t.name != type) continue;
      auto there = [](auto f) { return f ? Py_True : Py_False; };
      return checked(Py_BuildValue("{sOsOsOsOsOsOsO}", "groups", there(p->dialect.group), "kernels on disk",
                                   there(t.identity), "events", there(t.event_create), "pinned memory",
                                   there(t.host_allocate), "copies between devices", there(t.peer_copy), "a library",
                                   there(t.operator_find), "graphs", there(t.graph_create)));
    }
    raise(PyExc_ValueError, str_cat("no plugin offers the device ", type));
  });
}

// Files of plugins that installed packages offer, found when a device is named that nobody knows.
std::vector<std::string> installed_plugins() {
  std::vector<std::string> files;
  const PyGILState_STATE state = PyGILState_Ensure();
  {
    Own module(PyImport_ImportModule("strata._plugins"));
    Own list(module.get() ? PyObject_CallMethod(module.get(), "files", nullptr) : nullptr);
    for (Py_ssize_t i = 0; list.get() && i < PyList_GET_SIZE(list.get()); ++i)
      files.emplace_back(to_Str(PyList_GET_ITEM(list.get(), i)));
    PyErr_Clear();
  }
  PyGILState_Release(state);
  return files;
}

// The device's names in Python.
void give_names(const device::Plugin& plugin) {
  const PyGILState_STATE state = PyGILState_Ensure();
  {
    Own module(PyImport_ImportModule("strata._device_names"));
    Own done(module.get() ? PyObject_CallMethod(module.get(), "loaded", "s", plugin.table->name) : nullptr);
    if (!done.get()) PyErr_WriteUnraisable(nullptr);
  }
  PyGILState_Release(state);
}

PyObject* find(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    device::load_known();
    Py_RETURN_NONE;
  });
}

// _device_offers(device, operator)
PyObject* offers(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* device;
    const char* op;
    if (!PyArg_ParseTuple(args, "Os", &device, &op)) return nullptr;
    return wrap(unit_of(device).offers(op));
  });
}

PyObject* current(PyObject*, PyObject* device) {
  return guarded([&] { return wrap(int64_t(current_device(to_Device(device).type))); });
}

PyObject* set_current(PyObject*, PyObject* device) {
  return guarded([&]() -> PyObject* {
    set_current_device(unit_of(device).device());
    Py_RETURN_NONE;
  });
}

PyObject* synchronize(PyObject*, PyObject* device) {
  return guarded([&]() -> PyObject* {
    device::Unit& u = unit_of(device);
    {
      const ReleaseLock free(true);
      u.synchronize();
    }
    Py_RETURN_NONE;
  });
}

PyObject* memory(PyObject*, PyObject* device) {
  return guarded([&] {
    const MemoryStats s = unit_of(device).memory().stats();
    return checked(Py_BuildValue("{sKsKsKsK}", "live_bytes", s.live_bytes, "cached_bytes", s.cached_bytes, "peak_bytes",
                                 s.peak_bytes, "allocations", s.allocations));
  });
}

PyObject* reset_peak(PyObject*, PyObject* device) {
  return guarded([&]() -> PyObject* {
    unit_of(device).memory().reset_peak();
    Py_RETURN_NONE;
  });
}

// Gives memory of a device back, without the interpreter's lock.
template <class Release>
PyObject* released(PyObject* device, Release release) {
  return guarded([&]() -> PyObject* {
    device::Unit& u = unit_of(device);
    {
      const ReleaseLock free(true);
      release(u);
    }
    Py_RETURN_NONE;
  });
}

PyObject* empty_cache(PyObject*, PyObject* device) {
  return released(device, [](device::Unit& u) { u.memory().release_cached(); });
}
PyObject* empty_host_cache(PyObject*, PyObject* device) {
  return released(device, [](device::Unit& u) { u.pinned().release_cached(); });
}

// _device_texts(device, dtype, first, step)
PyObject* texts(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    PyObject* dtype;
    long long first, step;
    if (!PyArg_ParseTuple(args, "sOLL", &name, &dtype, &first, &step)) return nullptr;
    for (const device::Plugin* p : device::plugins()) {
      if (std::string_view(p->table->name) != name) continue;
      Own list(checked(PyList_New(0)));
      for (const device::KernelText& t : device::kernel_texts(*p, to_DType(dtype), first, step)) {
        Own row(checked(Py_BuildValue("ss", t.name.c_str(), t.text.c_str())));
        checked(PyList_Append(list.get(), row.get()));
      }
      return list.release();
    }
    raise(PyExc_ValueError, str_cat("no plugin offers the device ", name));
  });
}

// _device_likely(device, dtype): keys of the kernels that are compiled ahead.
PyObject* likely(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *device, *dtype;
    if (!PyArg_ParseTuple(args, "OO", &device, &dtype)) return nullptr;
    Own list(checked(PyList_New(0)));
    for (const device::KernelNest* n : device::likely_nests(unit_of(device).plugin(), to_DType(dtype))) {
      Own key(checked(PyUnicode_FromString(n->key.c_str())));
      checked(PyList_Append(list.get(), key.get()));
    }
    return list.release();
  });
}

// _device_warm(device, keys): compiles those that are not on disk, together.
PyObject* warm(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *device, *keys;
    if (!PyArg_ParseTuple(args, "OO!", &device, &PyList_Type, &keys)) return nullptr;
    device::Unit& u = unit_of(device);
    std::vector<const device::KernelNest*> nests;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); ++i) {
      const std::string key(to_Str(PyList_GET_ITEM(keys, i)));
      nests.push_back(device::known_nest(key));
      STRATA_CHECK_VALUE(nests.back(), "_device_warm: expected a key of _device_likely, got ", key);
    }
    int64_t made = 0;
    {
      const ReleaseLock free(true);
      made = u.kernels().warm(nests);
    }
    return wrap(made);
  });
}

PyObject* kernel_stats(PyObject*, PyObject* device) {
  return guarded([&] {
    device::Unit& unit = unit_of(device);
    device::Kernels& kernels = unit.kernels();
    const device::KernelStats s = kernels.stats();
    auto number = [](int64_t n) { return static_cast<long long>(n); };
    return checked(Py_BuildValue("{sLsLsLsLsLsLsdsdsO}", "launches", number(unit.launches()), "replayed",
                                 number(unit.replayed()), "compiled", number(s.compiled), "loaded", number(s.loaded),
                                 "modules", number(s.modules), "refused", number(s.refused), "compile_ms", s.compile_ms,
                                 "load_ms", s.load_ms, "kept", kernels.keeps() ? Py_True : Py_False));
  });
}

PyObject* generator(PyObject*, PyObject* device) {
  return guarded([&] { return wrap_generator(default_generator(to_Device(device))); });
}

PyObject* fallback_rows(PyObject*, PyObject*) {
  return guarded([] {
    Own list(checked(PyList_New(0)));
    for (const device::FallbackRow& r : device::fallback_rows()) {
      Own row(checked(Py_BuildValue("ssLLd", r.op.c_str(), r.device.c_str(), static_cast<long long>(r.calls),
                                    static_cast<long long>(r.bytes), r.us)));
      checked(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

PyObject* fallback_reset(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    device::reset_fallbacks();
    Py_RETURN_NONE;
  });
}

PyObject* fallback_set(PyObject*, PyObject* on) {
  return guarded([&] {
    const bool before = device::fallback_on();
    device::set_fallback(to_Bool(on));
    return wrap(before);
  });
}

PyObject* fallback_rescue(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    device::set_rescue(to_Bool(on));
    Py_RETURN_NONE;
  });
}

PyObject* fallback_budget(PyObject*, PyObject* us) {
  return guarded([&]() -> PyObject* {
    const double value = us == Py_None ? -1 : PyFloat_AsDouble(us);
    if (PyErr_Occurred()) return nullptr;
    device::set_fallback_budget(value);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_device_load", load, METH_O, "Opens a device's plugin; gives the device's name."},
    {"_device_plugins", plugins, METH_NOARGS, "(name, version, file, number of devices) of each plugin."},
    {"_device_parts", parts, METH_O, "{part: whether the plugin of that name offers it} of what may be left out."},
    {"_device_reason", reason, METH_O, "Why the plugin of that name has no devices; empty where it has."},
    {"_device_find", find, METH_NOARGS, "Loads plugins that the environment or installed packages name."},
    {"_device_offers", offers, METH_VARARGS, "Whether a device offers an operator of a name."},
    {"_device_current", current, METH_O, "This thread's current device of a type: its number."},
    {"_device_set_current", set_current, METH_O, "Makes a device this thread's current one."},
    {"_device_synchronize", synchronize, METH_O, "Waits for a device; raises what went wrong there."},
    {"_device_memory", memory, METH_O, "Bytes of a device in use, cached and at the peak; calls that reached it."},
    {"_device_reset_peak", reset_peak, METH_O, "Makes the present use of a device's memory the peak."},
    {"_device_empty_cache", empty_cache, METH_O, "Gives cached memory back to a device."},
    {"_device_empty_host_cache", empty_host_cache, METH_O,
     "Gives pinned memory that no tensor has back to the system."},
    {"_device_texts", texts, METH_VARARGS, "Names and texts of the table's kernels in a device's dialect."},
    {"_device_likely", likely, METH_VARARGS, "Keys of a device's kernels of a dtype that are compiled ahead."},
    {"_device_warm", warm, METH_VARARGS, "Compiles those of the keys that are not on disk; gives how many."},
    {"_device_kernels", kernel_stats, METH_O, "What a device's kernels came from in this process."},
    {"_device_generator", generator, METH_O, "The default generator of a device."},
    {"_fallback_rows", fallback_rows, METH_NOARGS, "(operator, device, calls, bytes, us), the dearest first."},
    {"_fallback_reset", fallback_reset, METH_NOARGS, "Forgets them."},
    {"_fallback_set", fallback_set, METH_O, "Lets operators fall back or not; gives what was set."},
    {"_fallback_rescue", fallback_rescue, METH_O, "Lets operators that fail on a device run on the CPU, or not."},
    {"_fallback_budget", fallback_budget, METH_O, "At most so many us of fallbacks from now on; None: any."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_devices(PyObject* module) {
  device::set_plugin_source(installed_plugins);
  device::set_plugin_watcher(give_names);
  add_functions(module, functions);
  init_streams(module);
}

}  // namespace strata::py
