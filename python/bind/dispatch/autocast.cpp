// Autocast's face. Device types come as names.
#include "dispatch/autocast.h"

#include "bind/autograd/node.h"

namespace strata::py {

namespace {

int device_type_of(PyObject* o) {
  if (!o) return 0;
  if (!PyUnicode_Check(o)) raise(PyExc_TypeError, "autocast: device_type must be str, not " + type_name(o));
  return parse_device(to_Str(o)).type;
}

bool is_device_type(PyObject* name) {
  const std::string wanted(to_Str(name));
  try {
    return device_type_name(parse_device(wanted).type) == wanted;
  } catch (const Error&) {
    return false;
  }
}

// A device that programs speak of and no plugin offers: what is asked of it has an answer.
bool is_absent(PyObject* o) {
  if (!o || !PyUnicode_Check(o) || is_device_type(o)) return false;
  Own words(checked(PyImport_ImportModule("strata._device_words")));
  Own names(checked(PyObject_CallMethod(words.get(), "device_names", nullptr)));
  return PySequence_Contains(names.get(), o) == 1;
}

// _autocast_enter(device_type, dtype, enabled=True, cache_enabled=True)
PyObject* enter(PyObject*, PyObject* args) {
  PyObject *device, *dtype;
  int enabled = 1, cache = 1;
  if (!PyArg_ParseTuple(args, "OO|pp", &device, &dtype, &enabled, &cache)) return nullptr;
  return guarded([&]() -> PyObject* {
    int type = device_type_of(device);
    autocast_enter(type, dtype == Py_None ? autocast_state(type).dtype : to_DType(dtype), enabled != 0, cache != 0);
    Py_RETURN_NONE;
  });
}

PyObject* leave(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    autocast_exit();
    Py_RETURN_NONE;
  });
}

// is_autocast_enabled(device_type=None): without one whether it is on for any device but the CPU, as PyTorch has it.
PyObject* is_enabled(PyObject*, PyObject* args) {
  PyObject* device = nullptr;
  if (!PyArg_ParseTuple(args, "|O", &device)) return nullptr;
  return guarded([&] {
    if (device) return wrap(!is_absent(device) && autocast_state(device_type_of(device)).enabled);
    bool any = false;
    for (int i = 1; i < kMaxDeviceTypes; ++i) any |= !device_type_name(i).empty() && autocast_state(i).enabled;
    return wrap(any);
  });
}

// set_autocast_enabled(device_type, enabled)
PyObject* set_enabled(PyObject*, PyObject* args) {
  PyObject* device;
  int enabled;
  if (!PyArg_ParseTuple(args, "Op", &device, &enabled)) return nullptr;
  return guarded([&]() -> PyObject* {
    int type = device_type_of(device);
    set_autocast_state(type, {enabled != 0, autocast_state(type).dtype});
    Py_RETURN_NONE;
  });
}

PyObject* get_dtype(PyObject*, PyObject* device) {
  return guarded([&] { return wrap(is_absent(device) ? DType::F16 : autocast_state(device_type_of(device)).dtype); });
}

PyObject* set_dtype(PyObject*, PyObject* args) {
  PyObject *device, *dtype;
  if (!PyArg_ParseTuple(args, "OO", &device, &dtype)) return nullptr;
  return guarded([&]() -> PyObject* {
    int type = device_type_of(device);
    set_autocast_state(type, {autocast_state(type).enabled, to_DType(dtype)});
    Py_RETURN_NONE;
  });
}

PyObject* is_cache_enabled(PyObject*, PyObject*) { return PyBool_FromLong(autocast_cache_enabled()); }
PyObject* set_cache_enabled(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    set_autocast_cache_enabled(to_Bool(on));
    Py_RETURN_NONE;
  });
}
PyObject* clear_cache(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    clear_autocast_cache();
    Py_RETURN_NONE;
  });
}

// A device type that is not there has no autocast; that is no error.
PyObject* is_available(PyObject*, PyObject* device) {
  return guarded([&] {
    if (!PyUnicode_Check(device)) raise(PyExc_TypeError, "autocast: device_type must be str, not " + type_name(device));
    return wrap(is_device_type(device));
  });
}

PyMethodDef functions[] = {
    {"_autocast_enter", enter, METH_VARARGS, nullptr},
    {"_autocast_exit", leave, METH_NOARGS, nullptr},
    {"is_autocast_enabled", is_enabled, METH_VARARGS, "Whether autocast is on for a kind of device on this thread."},
    {"set_autocast_enabled", set_enabled, METH_VARARGS, "Switches autocast for a kind of device on this thread."},
    {"get_autocast_dtype", get_dtype, METH_O, "The lower precision that autocast uses for a kind of device."},
    {"set_autocast_dtype", set_dtype, METH_VARARGS, "Sets the lower precision for a kind of device."},
    {"is_autocast_cache_enabled", is_cache_enabled, METH_NOARGS, "Whether casts of weights are kept."},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O, "Sets whether casts of weights are kept."},
    {"clear_autocast_cache", clear_cache, METH_NOARGS, "Drops the casts of weights that are kept."},
    {"_is_autocast_available", is_available, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_autocast(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
