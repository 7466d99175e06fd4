// Operators as Python objects: strata.ops.aten.add.Tensor, and what can be asked about the table.
#include <algorithm>
#include <unordered_map>

#include "bind/dispatch/modes.h"
#include "bind/dispatch/stack.h"
#include "bind/tensor/tensor.h"
#include "dispatch/boxed.h"
#include "dispatch/info.h"
#include "grad/engine/library.h"
#include "structmember.h"

namespace strata::py {

namespace {

struct PyOperator {
  PyObject_HEAD Operator* op;
  PyObject* dict;
};
PyTypeObject* operator_type = nullptr;

Operator& op_of(PyObject* o) { return *reinterpret_cast<PyOperator*>(o)->op; }
PyObject* text(std::string_view s) { return checked(PyUnicode_FromStringAndSize(s.data(), Py_ssize_t(s.size()))); }

std::string overload_name(const Operator& op) {
  const Schema& s = op.schema();
  return s.overload.empty() ? "default" : s.overload;
}
std::string packet_name(const Operator& op) { return op.schema().ns + "." + op.schema().name; }

int64_t elements(const Stack& stack) {
  int64_t n = 0;
  for (const IValue& v : stack) {
    if (v.is_tensor()) n += elements_of(v.get<Tensor>());
    if (v.is_tensors()) n += elements_of(v.get<IValue::TensorVec>());
  }
  return n;
}

bool is_number(PyObject* o) { return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o); }

PyObject* call_operator(PyObject* o, PyObject* args, PyObject* kwargs) {
  auto call = [&]() -> PyObject* {
    Overloaded overloaded;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) overloaded.add_nested(PyTuple_GET_ITEM(args, i));
    if (kwargs) {
      PyObject *key, *value;
      Py_ssize_t at = 0;
      while (PyDict_Next(kwargs, &at, &key, &value)) overloaded.add_nested(value);
    }
    if (!overloaded.args.empty() || torch_function_mode_active()) {
      PyObject* result = ask_torch_function(o, overloaded, args, kwargs);
      if (result || PyErr_Occurred()) return result;
    }
    const bool number = PyTuple_GET_SIZE(args) > 1 && is_number(PyTuple_GET_ITEM(args, 1));
    Operator& op = number ? beside_numbers(op_of(o), true) : op_of(o);
    Stack stack;
    args_to_stack(op, args, kwargs, stack);
    {
      ReleaseLock lock(elements(stack) >= kLongWork);
      call_boxed(op, stack);
    }
    return results_to_python(op, stack).release();
  };
  return guarded(call, op_of(o).schema().name);
}

// redispatch(key, *args, **kwargs): only the keys inside of `key`.
PyObject* redispatch(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (PyTuple_GET_SIZE(args) < 1) raise(PyExc_TypeError, "redispatch: expected the name of a key first");
    Operator& op = op_of(o);
    Key key = parse_key(to_Str(PyTuple_GET_ITEM(args, 0))).key;
    Own rest(checked(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args))));
    Stack stack;
    args_to_stack(op, rest.get(), kwargs, stack);
    Dispatch d = dispatch_of_stack(stack);
    {
      ReleaseLock lock(elements(stack) >= kLongWork);
      redispatch_boxed(op, d.below(key), stack);
    }
    return results_to_python(op, stack).release();
  });
}

PyObject* operator_repr(PyObject* o) {
  return guarded([&] {
    Operator& op = op_of(o);
    return text(str_cat("<OpOverload(op='", packet_name(op), "', overload='", overload_name(op), "')>"));
  });
}
PyObject* operator_str(PyObject* o) {
  return guarded([&] { return text(packet_name(op_of(o)) + "." + overload_name(op_of(o))); });
}
PyObject* operator_name(PyObject* o, PyObject*) {
  return guarded([&] { return text(op_of(o).name); });
}
PyObject* operator_copy(PyObject* o, PyObject*) { return new_reference(o).release(); }
PyObject* operator_reduce(PyObject* o, PyObject*) {
  return guarded([&] {
    return make_tuple(import_attr("strata.ops", "get").release(), make_tuple(text(op_of(o).name)).release()).release();
  });
}

PyObject* get_namespace(PyObject* o, void*) {
  return guarded([&] { return text(op_of(o).schema().ns); });
}
PyObject* get_overload(PyObject* o, void*) {
  return guarded([&] { return text(overload_name(op_of(o))); });
}
PyObject* get_dunder_name(PyObject* o, void*) {
  return guarded([&] { return text(op_of(o).schema().name + "." + overload_name(op_of(o))); });
}
PyObject* get_module(PyObject* o, void*) {
  return guarded([&] { return text("strata.ops." + op_of(o).schema().ns); });
}
PyObject* get_schema_text(PyObject* o, void*) {
  return guarded([&] { return text(op_of(o).schema_text); });
}
// Both are made in Python and kept in the object's dict.
PyObject* made_in_python(PyObject* o, const char* name, const char* maker) {
  return guarded([&] {
    PyOperator* self = reinterpret_cast<PyOperator*>(o);
    if (!self->dict) self->dict = checked(PyDict_New());
    if (PyObject* found = PyDict_GetItemString(self->dict, name)) return new_reference(found).release();
    Own made = call_object(import_attr("strata.ops", maker).get(), make_tuple(new_reference(o).release()).get());
    checked(PyDict_SetItemString(self->dict, name, made.get()));
    return made.release();
  });
}
PyObject* get_schema(PyObject* o, void*) { return made_in_python(o, "_schema", "_schema_of"); }
PyObject* get_packet(PyObject* o, void*) { return made_in_python(o, "_packet", "_packet_of"); }

PyMethodDef methods[] = {
    {"name", operator_name, METH_NOARGS, "Full name: 'aten::add.Tensor'."},
    {"redispatch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(redispatch)),
     METH_VARARGS | METH_KEYWORDS, "redispatch(key, *args, **kwargs): runs what lies inside of a dispatch key."},
    {"__copy__", operator_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", operator_copy, METH_O, nullptr},
    {"__reduce__", operator_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getset[] = {
    {"namespace", get_namespace, nullptr, "'aten' for the operators of the table.", nullptr},
    {"_overloadname", get_overload, nullptr, "Overload name; 'default' where it is empty.", nullptr},
    {"__name__", get_dunder_name, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"_schema", get_schema, nullptr, "The parsed schema.", nullptr},
    {"_schema_text", get_schema_text, nullptr, "The schema as it was written.", nullptr},
    {"overloadpacket", get_packet, nullptr, "All overloads of its name.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyOperator, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

// ---- functions

// _op_get(name)
PyObject* op_get(PyObject*, PyObject* name) {
  return guarded([&] { return new_reference(operator_object(operator_of(name))).release(); });
}

// _op_names(base=None): all, or the overloads of one name; [] when there is none.
PyObject* op_names(PyObject*, PyObject* args) {
  PyObject* base = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &base)) return nullptr;
  return guarded([&] {
    OperatorTable& table = OperatorTable::instance();
    std::vector<Operator*> found = base == Py_None ? table.all() : table.overloads(to_Str(base));
    Own list(checked(PyList_New(0)));
    for (Operator* op : found) {
      Own name(text(op->name));
      checked(PyList_Append(list.get(), name.get()));
    }
    return list.release();
  });
}

// _op_fits(op, args, kwargs)
PyObject* op_fits(PyObject*, PyObject* args) {
  PyObject *op, *call_args, *kwargs;
  if (!PyArg_ParseTuple(args, "OO!O!", &op, &PyTuple_Type, &call_args, &PyDict_Type, &kwargs)) return nullptr;
  return guarded([&] { return wrap(args_fit(operator_of(op), call_args, kwargs)); });
}

// _explain_dispatch(op, args, kwargs)
PyObject* explain(PyObject*, PyObject* args) {
  PyObject *op, *call_args, *kwargs;
  if (!PyArg_ParseTuple(args, "OO!O!", &op, &PyTuple_Type, &call_args, &PyDict_Type, &kwargs)) return nullptr;
  return guarded([&] {
    Operator& o = operator_of(op);
    Stack stack;
    args_to_stack(o, call_args, kwargs, stack);
    return text(explain_dispatch(o, stack));
  });
}

// _dispatch_dump(op)
PyObject* dump(PyObject*, PyObject* op) {
  return guarded([&] { return text(OperatorTable::instance().dump(operator_of(op))); });
}

// _op_info(op): what the table says, by field, and all of it as a text; None for operators that the table lacks.
PyObject* op_info(PyObject*, PyObject* arg) {
  return guarded([&]() -> PyObject* {
    Operator& op = operator_of(arg);
    const std::optional<OpInfo> said = info(op);
    if (!said) Py_RETURN_NONE;
    Own fields(checked(PyDict_New())), derivatives(checked(PyDict_New()));
    const auto put = [](const Own& dict, std::string_view name, PyObject* value) {
      Own key(text(name)), item(value);
      if (PyDict_SetItem(dict.get(), key.get(), item.get()) < 0) throw PythonError();
    };
    put(fields, "name", text(op.name));
    put(fields, "schema", text(op.schema_text));
    for (const OpInfoField& f : op_info_fields) put(fields, f.name, text((*said).*f.field));
    for (const auto& [names, formula] : said->derivatives) put(derivatives, names, text(formula));
    put(fields, "derivatives", derivatives.release());
    const Operator* twin = functional_twin(op);
    put(fields, "twin", twin ? text(twin->name) : new_reference(Py_None).release());
    return make_tuple(fields.release(), text(describe(op))).release();
  });
}

Own arguments(const std::vector<Argument>& list) {
  Own tuple(checked(PyTuple_New(Py_ssize_t(list.size()))));
  for (size_t i = 0; i < list.size(); ++i) {
    const Argument& a = list[i];
    Own item = make_tuple(text(a.name), text(to_string(a.type)), wrap(a.default_value.has_value()),
                          a.default_value ? to_python(*a.default_value, a.type) : new_reference(Py_None).release(),
                          wrap(a.keyword_only), text(a.type.alias), wrap(a.type.written));
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), item.release());
  }
  return tuple;
}

// _parse_schema(text): (ns, name, overload, arguments, returns), each argument
// (name, type, has_default, default, keyword_only, alias, written). Raises ValueError with the column.
PyObject* parse(PyObject*, PyObject* o) {
  return guarded([&] {
    Schema s = parse_schema(to_Str(o));
    return make_tuple(text(s.ns), text(s.name), text(s.overload), arguments(s.args).release(),
                      arguments(s.returns).release(), text(s.text()))
        .release();
  });
}

// _return_type(name, fields): the class of results of that name, "strata.return_types.max".
PyObject* return_type(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    PyObject* fields = nullptr;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &fields)) throw PythonError();
    std::vector<std::string> words;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); ++i) words.emplace_back(to_Str(PyTuple_GET_ITEM(fields, i)));
    std::vector<const char*> texts;
    for (const std::string& w : words) texts.push_back(w.c_str());
    return reinterpret_cast<PyObject*>(make_struct_type(name, {texts.data(), texts.size()}));
  });
}

PyMethodDef functions[] = {{"_op_get", op_get, METH_O, nullptr},
                           {"_op_names", op_names, METH_VARARGS, nullptr},
                           {"_op_fits", op_fits, METH_VARARGS, nullptr},
                           {"_explain_dispatch", explain, METH_VARARGS, nullptr},
                           {"_dispatch_dump", dump, METH_O, nullptr},
                           {"_op_info", op_info, METH_O, nullptr},
                           {"_parse_schema", parse, METH_O, nullptr},
                           {"_return_type", return_type, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

Operator& beside_numbers(Operator& op, bool numbers) {
  static constexpr std::string_view kNames[] = {"aten::add", "aten::sub", "aten::mul", "aten::div"};
  const std::string_view name = op.name, from = numbers ? ".Tensor" : ".Scalar", to = numbers ? ".Scalar" : ".Tensor";
  const size_t dot = name.find('.');
  if (dot == name.npos || !name.substr(dot).starts_with(from)) return op;
  std::string_view base = name.substr(0, dot), rest = name.substr(dot + from.size());
  if (!rest.empty() && rest != "_mode") return op;
  if (base.back() == '_') base.remove_suffix(1);
  if (std::ranges::find(kNames, base) == std::end(kNames)) return op;
  Operator* found = OperatorTable::instance().find(str_cat(name.substr(0, dot), to, rest));
  return found ? *found : op;
}

PyObject* operator_object(Operator& op) {
  static auto* objects = new std::unordered_map<Operator*, PyObject*>;  // operators live for ever
  PyObject*& o = (*objects)[&op];
  if (!o) {
    o = checked(operator_type->tp_alloc(operator_type, 0));
    reinterpret_cast<PyOperator*>(o)->op = &op;
  }
  return o;
}

bool is_operator(PyObject* o) { return Py_TYPE(o) == operator_type; }

Operator& operator_of(PyObject* o) {
  if (is_operator(o)) return op_of(o);
  if (!PyUnicode_Check(o)) raise(PyExc_TypeError, "expected an operator or its name, got " + type_name(o));
  return OperatorTable::instance().get(to_Str(o));
}

void init_operator(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(call_operator)},
      {Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
      {Py_tp_str, reinterpret_cast<void*>(operator_str)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getset},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>("One operator of the table; call it with its schema's arguments.")},
      {0, nullptr}};
  PyType_Spec spec = {"strata._C.OpOverload", int(sizeof(PyOperator)), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  operator_type = add_type(module, &spec);
  add_functions(module, functions);
}

}  // namespace strata::py
