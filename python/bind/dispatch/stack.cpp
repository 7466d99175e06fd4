#include "bind/dispatch/stack.h"

#include "bind/args/parse.h"
#include "bind/tensor/tensor.h"

namespace strata::py {

namespace {

bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

ArgKind kind_of(const TypeSpec& t) { return arg_kinds[int(t.base)][!t.list ? 0 : t.optional_elements ? 2 : 1]; }

bool is_bool_list(PyObject* o) {
  if (!is_list(o)) return false;
  Items items(o);
  for (Py_ssize_t i = 0; i < items.size(); ++i)
    if (!PyBool_Check(items[i])) return false;
  return true;
}

// A written argument must be a tensor that the caller has; elsewhere a number may stand for one.
bool stands_for_tensor(PyObject* o, const TypeSpec& t) {
  return t.base == ArgType::Tensor && !t.list && !t.written && !is_tensor(o) && is_number(o);
}

std::string describe(PyObject* o) {
  if (!is_list(o)) return type_name(o);
  Items items(o);
  std::string text = type_name(o) + " of (";
  for (Py_ssize_t i = 0; i < items.size() && i < 8; ++i) text += (i ? ", " : "") + type_name(items[i]);
  return text + (items.size() > 8 ? ", ...)" : ")");
}

// A Python error that names the argument, unless the conversion set one already.
IValue convert_arg(const Operator& op, size_t i, PyObject* o) {
  const Argument& a = op.schema().args[i];
  if (!fits(o, a.type))
    raise(PyExc_TypeError, str_cat(op.name, "(): argument '", a.name, "' (position ", i + 1, ") must be ",
                                   to_string(a.type), ", not ", describe(o), "; the schema is ", op.schema_text));
  return from_python(o, a.type);
}

bool same_value(const IValue& a, const IValue& b) {
  if (a.value().index() != b.value().index()) return false;
  if (a.is_none()) return true;
  if (a.is<int64_t>()) return a.get<int64_t>() == b.get<int64_t>();
  if (a.is<double>()) return a.get<double>() == b.get<double>();
  if (a.is<bool>()) return a.get<bool>() == b.get<bool>();
  if (a.is<std::string>()) return a.get<std::string>() == b.get<std::string>();
  if (a.is<std::vector<int64_t>>()) return a.get<std::vector<int64_t>>() == b.get<std::vector<int64_t>>();
  if (a.is<std::vector<double>>()) return a.get<std::vector<double>>() == b.get<std::vector<double>>();
  if (a.is<std::vector<bool>>()) return a.get<std::vector<bool>>() == b.get<std::vector<bool>>();
  if (a.is<MemoryFormat>()) return a.get<MemoryFormat>() == b.get<MemoryFormat>();
  if (a.is<Scalar>()) {
    const Scalar &x = a.get<Scalar>(), &y = b.get<Scalar>();
    return x.kind() == y.kind() && x.to_complex() == y.to_complex() && x.to_int() == y.to_int();
  }
  return false;
}

bool is_default(const Argument& a, const IValue& v) { return a.default_value && same_value(*a.default_value, v); }

template <class T, class F>
PyObject* list_of(const std::vector<T>& values, F&& item) {
  Own list(checked(PyList_New(Py_ssize_t(values.size()))));
  for (size_t i = 0; i < values.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), checked(item(values[i])));
  return list.release();
}

// Slots of a call by the schema's order; borrowed, null where the default is to be taken.
bool place_args(const Operator& op, PyObject* args, PyObject* kwargs, std::vector<PyObject*>& slots, std::string* why) {
  const Schema& schema = op.schema();
  slots.assign(schema.args.size(), nullptr);
  Py_ssize_t given = PyTuple_GET_SIZE(args);
  size_t positional = 0;
  while (positional < schema.args.size() && !schema.args[positional].keyword_only) ++positional;
  if (size_t(given) > positional) {
    *why = str_cat("takes ", positional, " positional arguments, got ", given);
    return false;
  }
  for (Py_ssize_t i = 0; i < given; ++i) slots[size_t(i)] = PyTuple_GET_ITEM(args, i);
  if (kwargs) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &key, &value)) {
      std::string name = shown_text(key);
      int i = schema.arg_index(name == "input" && schema.arg_index("input") < 0 ? "self" : name);
      if (i < 0) {
        *why = str_cat("got an unexpected keyword argument '", name, "'");
        return false;
      }
      if (slots[size_t(i)]) {
        *why = str_cat("got two values for the argument '", name, "'");
        return false;
      }
      slots[size_t(i)] = value;
    }
  }
  for (size_t i = 0; i < slots.size(); ++i)
    if (!slots[i] && !schema.args[i].default_value) {
      *why = str_cat("is missing a value for the argument '", schema.args[i].name, "'");
      return false;
    }
  return true;
}

}  // namespace

bool fits(PyObject* o, const TypeSpec& t) {
  if (o == Py_None) return t.optional || t.base == ArgType::Layout || (t.base == ArgType::Generator);
  if (t.base == ArgType::Bool && t.list) return is_bool_list(o);
  if (stands_for_tensor(o, t)) return true;
  ArgSpec spec{"", kind_of(t), false, false, false, t.list_size};
  Py_ssize_t element = -1;
  if (spec.kind == ArgKind::IntList && t.list_size >= 0 && is_int_like(o)) return true;
  return accepts(spec, o, &element);
}

IValue from_python(PyObject* o, const TypeSpec& t) {
  if (o == Py_None) return {};
  switch (t.base) {
    case ArgType::Tensor: {
      if (!t.list) {
        if (!is_tensor(o)) return IValue(wrapped_number(to_Scalar(o)));
        return IValue(tensor_of(o));
      }
      return IValue(t.optional_elements ? to_OptTensorList(o) : to_TensorList(o));
    }
    case ArgType::Int:
    case ArgType::SymInt:
      if (!t.list) return IValue(to_Int(o));
      if (t.list_size >= 0 && !is_list(o)) return IValue(std::vector<int64_t>(size_t(t.list_size), to_Int(o)));
      return IValue(to_IntList(o).v.vec());
    case ArgType::Float:
      if (!t.list) return IValue(to_Float(o));
      return IValue(to_FloatList(o).v);
    case ArgType::Bool: {
      if (!t.list) return IValue(to_Bool(o));
      std::vector<bool> list;
      Items items(o);
      for (Py_ssize_t i = 0; i < items.size(); ++i) list.push_back(to_Bool(items.own(i).get()));
      return IValue(std::move(list));
    }
    case ArgType::Scalar:
      return IValue(to_Scalar(o));
    case ArgType::Str:
      return IValue(std::string(to_Str(o)));
    case ArgType::DType:
      return IValue(to_DType(o));
    case ArgType::Device:
      return IValue(to_Device(o));
    case ArgType::MemoryFormat:
      return IValue(to_Format(o));
    case ArgType::Generator:
      return IValue(to_Generator(o));
    case ArgType::Layout:
      return {};
  }
  return {};
}

PyObject* to_python(const IValue& v, const TypeSpec&) {
  if (v.is_none()) return new_reference(Py_None).release();
  if (v.is_tensor()) return wrap(v.get<Tensor>());
  if (v.is_tensors()) return list_of(v.get<IValue::TensorVec>(), [](const Tensor& t) { return wrap(t); });
  if (v.is<int64_t>()) return wrap(v.get<int64_t>());
  if (v.is<double>()) return wrap(v.get<double>());
  if (v.is<bool>()) return wrap(v.get<bool>());
  if (v.is<Scalar>()) return wrap(v.get<Scalar>());
  if (v.is<std::string>()) return PyUnicode_FromString(v.get<std::string>().c_str());
  if (v.is<std::vector<int64_t>>())
    return list_of(v.get<std::vector<int64_t>>(), [](int64_t i) { return PyLong_FromLongLong(i); });
  if (v.is<std::vector<double>>()) return list_of(v.get<std::vector<double>>(), PyFloat_FromDouble);
  if (v.is<std::vector<bool>>()) return list_of(v.get<std::vector<bool>>(), [](bool b) { return PyBool_FromLong(b); });
  if (v.is<Device>()) return wrap(v.get<Device>());
  if (v.is<DType>()) return wrap(v.get<DType>());
  if (v.is<MemoryFormat>()) return wrap_format(v.get<MemoryFormat>());
  if (v.is<Generator>()) return wrap_generator(v.get<Generator>());
  throw_error(ErrorKind::Type, "a boxed value of this kind has no Python form");
}

void args_to_stack(const Operator& op, PyObject* args, PyObject* kwargs, Stack& stack) {
  std::vector<PyObject*> slots;
  std::string why;
  if (!place_args(op, args, kwargs, slots, &why))
    raise(PyExc_TypeError, str_cat(op.name, "() ", why, "; the schema is ", op.schema_text));
  const Schema& schema = op.schema();
  stack.reserve(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i])
      stack.push_back(convert_arg(op, i, slots[i]));
    else
      stack.push_back(schema.args[i].default_value ? *schema.args[i].default_value : IValue());
  }
}

bool args_fit(const Operator& op, PyObject* args, PyObject* kwargs) {
  std::vector<PyObject*> slots;
  std::string why;
  if (!place_args(op, args, kwargs, slots, &why)) return false;
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i] && !fits(slots[i], op.schema().args[i].type)) return false;
  return true;
}

PythonArgs stack_to_args(const Operator& op, const Stack& stack) {
  const Schema& schema = op.schema();
  size_t positional = 0;
  while (positional < schema.args.size() && !schema.args[positional].keyword_only) ++positional;
  size_t given = positional;
  while (given > 0 && is_default(schema.args[given - 1], stack[given - 1])) --given;
  PythonArgs out{Own(checked(PyTuple_New(Py_ssize_t(given)))), Own(checked(PyDict_New()))};
  for (size_t i = 0; i < given; ++i)
    PyTuple_SET_ITEM(out.args.get(), Py_ssize_t(i), checked(to_python(stack[i], schema.args[i].type)));
  for (size_t i = positional; i < schema.args.size(); ++i) {
    if (is_default(schema.args[i], stack[i])) continue;
    Own value(checked(to_python(stack[i], schema.args[i].type)));
    checked(PyDict_SetItemString(out.kwargs.get(), schema.args[i].name.c_str(), value.get()));
  }
  return out;
}

Own results_to_python(const Operator& op, const Stack& results) {
  const Schema& schema = op.schema();
  if (results.empty()) return new_reference(Py_None);
  auto item = [&](size_t i) {
    return checked(to_python(results[i], i < schema.returns.size() ? schema.returns[i].type : TypeSpec()));
  };
  if (results.size() == 1) return Own(item(0));
  Own tuple(checked(PyTuple_New(Py_ssize_t(results.size()))));
  for (size_t i = 0; i < results.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), item(i));
  return tuple;
}

void results_from_python(const Operator& op, PyObject* result, const Stack& args, const std::string& source,
                         Stack& results) {
  const Schema& schema = op.schema();
  size_t count = schema.returns.size();
  auto expect = [&](bool ok, PyObject* got) {
    if (ok) return;
    std::string wanted;
    for (const Argument& r : schema.returns) wanted += (wanted.empty() ? "" : ", ") + to_string(r.type);
    raise(PyExc_TypeError,
          str_cat(op.name, ": the Python kernel from ", source, " returned ", describe(got), "; expected ",
                  count == 0   ? "None"
                  : count == 1 ? wanted
                               : "a tuple of (" + wanted + ")"));
  };
  if (count == 0) {
    expect(result == Py_None, result);
    return;
  }
  std::vector<Own> items;
  if (count == 1) {
    items.push_back(new_reference(result));
  } else {
    expect(is_list(result) && PySequence_Fast_GET_SIZE(result) == Py_ssize_t(count), result);
    for (size_t i = 0; i < count; ++i) items.push_back(new_reference(PySequence_Fast_GET_ITEM(result, Py_ssize_t(i))));
  }
  for (size_t i = 0; i < count; ++i) {
    const TypeSpec& t = schema.returns[i].type;
    PyObject* item = items[i].get();
    if (item == Py_None && t.written) {
      for (size_t k = 0; k < schema.args.size(); ++k)
        if (schema.args[k].type.alias == t.alias) {
          results.push_back(args[k]);
          break;
        }
      continue;
    }
    // None stands for a tensor that is not there, as from native batch norm.
    expect((item == Py_None && t.base == ArgType::Tensor && !t.list && count > 1) ||
               (fits(item, t) && (t.base != ArgType::Tensor || t.list || is_tensor(item) || item == Py_None)),
           result);
    results.push_back(from_python(item, t));
  }
}

}  // namespace strata::py
