// strata.device: a device type and an index.
#include <vector>

#include "bind/args/parse.h"
#include "bind/tensor/methods.h"
#include "core/factory_device.h"

namespace strata::py {

PyTypeObject* device_type;

namespace {

Device device_of(PyObject* o) { return reinterpret_cast<PyDevice*>(o)->device; }

// Programs speak of devices that are not here, to compare with them or to choose one later.
Device named(PyObject* o) {
  if (!PyUnicode_Check(o)) return to_Device(o);
  const std::string text(to_Str(o)), name = text.substr(0, text.find(':'));
  try {
    return parse_device(text, true);
  } catch (const Error&) {
    Own words(checked(PyImport_ImportModule("strata._device_words")));
    Own names(checked(PyObject_CallMethod(words.get(), "device_names", nullptr)));
    Own own(checked(PyUnicode_FromString(name.c_str())));
    const int spoken = PySequence_Contains(names.get(), own.get());
    if (spoken < 0) throw PythonError();
    if (!spoken) throw;
  }
  intern_device_type(name, false);
  return parse_device(text, true);
}

// device("cpu"), device("cpu:0"), device("cpu", 0), device(other).
PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject *type = nullptr, *index = nullptr;
    static const char* names[] = {"type", "index", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type, &index))
      throw PythonError();
    Device d = named(type);
    if (index && index != Py_None) {
      int64_t i = int_argument("device", "index", index);
      STRATA_CHECK(d.index < 0,
                   "type (string) must not include an index because index was passed explicitly: ", to_string(d));
      STRATA_CHECK(i >= 0 && i < 127, "device: Device index must not be negative, got ", i);
      d.index = int8_t(i);
    }
    return wrap(d);
  });
}

PyObject* repr(PyObject* o) {
  Device d = device_of(o);
  std::string text = "device(type='" + device_type_name(d.type) + "'";
  if (d.index >= 0) text += ", index=" + std::to_string(d.index);
  text += ")";
  return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
}

PyObject* str(PyObject* o) { return PyUnicode_FromString(to_string(device_of(o)).c_str()); }

Py_hash_t hash(PyObject* o) {
  Device d = device_of(o);
  return (Py_hash_t(d.type) << 8 | uint8_t(d.index)) + 1000003;
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != device_type) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of(a) == device_of(b)) == (op == Py_EQ));
}

PyObject* get_type(PyObject* o, void*) { return PyUnicode_FromString(device_type_name(device_of(o).type).c_str()); }
PyObject* get_index(PyObject* o, void*) {
  if (device_of(o).index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(device_of(o).index);
}

PyObject* reduce(PyObject* o, PyObject*) {
  return guarded([&] {
    Own type(checked(get_type(o, nullptr)));
    Own index(checked(get_index(o, nullptr)));
    return checked(Py_BuildValue("O(OO)", device_type, type.get(), index.get()));
  });
}

// `with device:` makes it this thread's default.
thread_local std::vector<Device> left;  // the defaults of the scopes around

PyObject* enter(PyObject* o, PyObject*) {
  return guarded([&] {
    Device before = factory_device();
    set_factory_device(device_of(o));
    left.push_back(before);
    return Py_NewRef(o);
  });
}

PyObject* leave(PyObject*, PyObject*) {
  return guarded([&] {
    STRATA_CHECK(!left.empty(), "device.__exit__: no scope of a device is open on this thread");
    set_factory_device(left.back());
    left.pop_back();
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {"__enter__", enter, METH_NOARGS, "Makes factories of this thread use the device."},
                         {"__exit__", leave, METH_VARARGS, "Ends that."},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"type", get_type, nullptr, "The name of the device type: 'cpu'.", nullptr},
    {"index", get_index, nullptr, "The number among the devices of the type, or None for the current one.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_str, reinterpret_cast<void*>(str)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("device(type, index=None)\n\nWhere tensors live: strata.device('cpu').")},
    {0, nullptr},
};
PyType_Spec spec = {"strata.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* wrap(Device d) {
  // The plain CPU is asked for all the time.
  static PyObject* cpu = nullptr;
  if (cpu && d == Device{}) return Py_NewRef(cpu);
  PyObject* o = checked(device_type->tp_alloc(device_type, 0));
  reinterpret_cast<PyDevice*>(o)->device = d;
  if (d == Device{}) cpu = Py_NewRef(o);
  return o;
}

void init_device(PyObject* module) { device_type = add_type(module, &spec); }

}  // namespace strata::py
