// strata.dtype, strata.layout and strata.memory_format: one object for each value, told apart by identity.
#include "bind/args/parse.h"
#include "bind/types/types.h"

namespace strata::py {

PyTypeObject* dtype_type;
PyTypeObject* layout_type;
PyTypeObject* memory_format_type;

namespace {

PyObject* dtypes[kDTypeCount];
PyObject* formats[4];
PyObject* strided;
constexpr const char* format_names[4] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

DType dtype_of(PyObject* o) { return reinterpret_cast<PyDType*>(o)->dtype; }

std::string& package() {
  static std::string name = "strata";
  return name;
}

PyObject* dtype_repr(PyObject* o) { return shown(str_cat(dtype_of(o))); }
// Pickled by the name under which the module strata holds it.
PyObject* dtype_reduce(PyObject* o, PyObject*) { return PyUnicode_FromString(traits(dtype_of(o)).name); }

PyObject* to_real(PyObject* o, PyObject*) {
  return guarded([&] { return wrap(traits(dtype_of(o)).component); });
}
PyObject* to_complex_type(PyObject* o, PyObject*) {
  return guarded([&] {
    DType t = dtype_of(o);
    STRATA_CHECK(is_complex(t) || is_float(t), "to_complex: expected a floating-point or complex dtype, got ", t);
    STRATA_CHECK_NOT_IMPLEMENTED(t != DType::F16, "to_complex: there is no complex dtype of ", t,
                                 " parts; convert to strata.float32 first");
    return wrap(to_complex(t == DType::BF16 ? DType::F32 : t));
  });
}

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", to_real, METH_NOARGS, "The dtype of the parts of a complex dtype; others stay."},
    {"to_complex", to_complex_type, METH_NOARGS, "The complex dtype with such parts."},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* floating(PyObject* o, void*) { return PyBool_FromLong(is_float(dtype_of(o))); }
PyObject* complex(PyObject* o, void*) { return PyBool_FromLong(is_complex(dtype_of(o))); }
PyObject* has_sign(PyObject* o, void*) {
  DKind k = traits(dtype_of(o)).kind;
  return PyBool_FromLong(k != DKind::Bool && k != DKind::Unsigned);
}
PyObject* bytes(PyObject* o, void*) { return PyLong_FromLongLong(itemsize(dtype_of(o))); }
PyObject* module_name(PyObject*, void*) { return PyUnicode_FromString("strata"); }

PyGetSetDef dtype_attributes[] = {
    {"is_floating_point", floating, nullptr, "float16, bfloat16, float32 or float64.", nullptr},
    {"is_complex", complex, nullptr, "complex64 or complex128.", nullptr},
    {"is_signed", has_sign, nullptr, "Has negative values.", nullptr},
    {"itemsize", bytes, nullptr, "Bytes of one element.", nullptr},
    {"__module__", module_name, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot dtype_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
    {Py_tp_methods, dtype_methods},
    {Py_tp_getset, dtype_attributes},
    {Py_tp_doc, const_cast<char*>("The type of a tensor's elements.")},
    {0, nullptr},
};
constexpr unsigned kSealed = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
PyType_Spec dtype_spec = {"strata.dtype", sizeof(PyDType), 0, kSealed, dtype_slots};

const char* format_name(PyObject* o) { return format_names[int(reinterpret_cast<PyFormat*>(o)->format)]; }
PyObject* format_repr(PyObject* o) { return shown(std::string("strata.") + format_name(o)); }
PyObject* format_reduce(PyObject* o, PyObject*) { return PyUnicode_FromString(format_name(o)); }
PyMethodDef format_methods[] = {{"__reduce__", format_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef module_attribute[] = {{"__module__", module_name, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot format_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(format_repr)},
    {Py_tp_methods, format_methods},
    {Py_tp_getset, module_attribute},
    {Py_tp_doc, const_cast<char*>("The order of a tensor's dims in memory.")},
    {0, nullptr},
};
PyType_Spec format_spec = {"strata.memory_format", sizeof(PyFormat), 0, kSealed, format_slots};

PyObject* layout_repr(PyObject*) { return shown("strata.strided"); }
PyObject* layout_reduce(PyObject*, PyObject*) { return PyUnicode_FromString("strided"); }
PyMethodDef layout_methods[] = {{"__reduce__", layout_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyType_Slot layout_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(layout_repr)},
    {Py_tp_methods, layout_methods},
    {Py_tp_getset, module_attribute},
    {Py_tp_doc, const_cast<char*>("How a tensor's elements are kept: strata.strided.")},
    {0, nullptr},
};
PyType_Spec layout_spec = {"strata.layout", sizeof(PyObject), 0, kSealed, layout_slots};

}  // namespace

PyObject* shown(const std::string& text) {
  const std::string made = package() + text.substr(text.find('.'));
  return PyUnicode_FromStringAndSize(made.data(), Py_ssize_t(made.size()));
}

namespace {
PyObject* set_package(PyObject*, PyObject* name) {
  return guarded([&] {
    package() = to_Str(name);
    return Py_NewRef(Py_None);
  });
}
PyObject* shown_text(PyObject*, PyObject* text) {
  return guarded([&] { return shown(std::string(to_Str(text))); });
}
PyMethodDef functions[] = {
    {"_shown", shown_text, METH_O, "The text, which begins with this package's name, as it is shown."},
    {"_set_shown_package", set_package, METH_O, "Dtypes, layouts and sizes are shown as its own from now on."},
    {nullptr, nullptr, 0, nullptr}};
}  // namespace

PyObject* wrap(DType t) { return Py_NewRef(dtypes[int(t)]); }
PyObject* wrap_format(MemoryFormat f) { return Py_NewRef(formats[int(f)]); }
PyObject* wrap_layout() { return Py_NewRef(strided); }

void init_dtype(PyObject* module) {
  add_functions(module, functions);
  dtype_type = add_type(module, &dtype_spec);
  for (int i = 0; i < kDTypeCount; ++i) {
    dtypes[i] = checked(dtype_type->tp_alloc(dtype_type, 0));
    reinterpret_cast<PyDType*>(dtypes[i])->dtype = DType(i);
    add_object(module, traits(DType(i)).name, Py_NewRef(dtypes[i]));
  }
  for (const char* alias : {"float", "double", "half", "int", "long", "short", "cfloat", "cdouble"})
    add_object(module, alias, wrap(*dtype_from_name(alias)));
  memory_format_type = add_type(module, &format_spec);
  for (int i = 0; i < 4; ++i) {
    formats[i] = checked(memory_format_type->tp_alloc(memory_format_type, 0));
    reinterpret_cast<PyFormat*>(formats[i])->format = MemoryFormat(i);
    add_object(module, format_names[i], Py_NewRef(formats[i]));
  }
  layout_type = add_type(module, &layout_spec);
  strided = checked(layout_type->tp_alloc(layout_type, 0));
  add_object(module, "strided", Py_NewRef(strided));
}

}  // namespace strata::py
