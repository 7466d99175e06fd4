// Python objects to Values.
#include <unordered_map>

#include "bind/io/io.h"
#include "bind/types/types.h"
#include "dispatch/seen.h"
#include "grad/engine/variable.h"

namespace strata::py {

namespace {

using io::Value;

std::string text_of(PyObject* o) {
  Own shown(PyObject_Repr(o));
  if (!shown) {
    PyErr_Clear();
    return "?";
  }
  std::string s(to_Str(shown.get()));
  return s.size() <= 60 ? s : s.substr(0, 57) + "...";
}

bool has(PyObject* o, const char* name) {
  Own found(PyObject_GetAttrString(o, name));
  if (!found) PyErr_Clear();
  return bool(found);
}

// The attribute of a module that is loaded already; null without an error otherwise. Borrowed from the module.
PyObject* loaded(const char* module, const char* name) {
  PyObject* m = PyDict_GetItemString(PyImport_GetModuleDict(), module);
  return m && PyModule_Check(m) ? PyDict_GetItemString(PyModule_GetDict(m), name) : nullptr;
}

std::string advice(PyObject* o) {
  const std::string module = Py_TYPE(o)->tp_name;
  if (is_tensor(o)) return "save .as_subclass(strata.Tensor) of it";
  if (PyObject* type = loaded("enum", "Enum"); type && PyObject_IsInstance(o, type) == 1) return "save its .value";
  if (module.rfind("numpy", 0) == 0)
    return PyObject_CheckBuffer(o) && has(o, "__array_interface__") && !has(o, "as_integer_ratio")
               ? "save strata.from_numpy(...) of it, or .item() of a number"
               : "save .item() of it";
  if (Py_TYPE(o) == generator_type) return "save its get_state()";
  if (has(o, "state_dict")) return "save its state_dict()";
  if (PyDict_Check(o)) return "save dict(...) of it";
  if (PyTuple_Check(o)) return "save tuple(...) of it";
  if (PyList_Check(o)) return "save list(...) of it";
  if (PyUnicode_Check(o) || has(o, "__fspath__")) return "save str(...) of it";
  if (PyLong_Check(o)) return "save int(...) of it";
  if (PyFloat_Check(o)) return "save float(...) of it";
  if (PyCallable_Check(o)) return "files hold no code: save a name and look the code up by it";
  return "save its fields as a dict of tensors and plain values";
}

class Converter {
 public:
  Converter() {
    collections_ = Own(checked(PyImport_ImportModule("collections")));
    counter_ = Own(checked(PyObject_GetAttrString(collections_.get(), "Counter")));
  }

  Value convert(PyObject* o) {
    PyTypeObject* type = Py_TYPE(o);
    if (o == Py_None) return {};
    if (PyBool_Check(o)) return {o == Py_True};
    if (PyLong_CheckExact(o)) return integer(o);
    if (PyFloat_CheckExact(o)) return {PyFloat_AS_DOUBLE(o)};
    if (PyComplex_CheckExact(o)) return {std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o))};
    if (PyUnicode_CheckExact(o)) return {text(o)};
    if (PyBytes_CheckExact(o)) return bytes(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o), false);
    if (PyByteArray_CheckExact(o)) return bytes(PyByteArray_AS_STRING(o), PyByteArray_GET_SIZE(o), true);
    if (type == dtype_type) return {to_DType(o)};
    if (type == device_type) return {to_Device(o)};
    if (type == layout_type) return {io::StridedLayout{}};
    if (auto known = done_.find(o); known != done_.end()) return known->second;
    if (path_.size() >= size_t(io::kMaxDepth))
      raise(PyExc_ValueError,
            str_cat("save: the object is nested deeper than ", io::kMaxDepth, ", or contains itself, at ", place()));
    Value v;
    if (is_tensor(o)) {
      v = tensor(o);
    } else if (PyList_CheckExact(o)) {
      v = list(o, io::List::Plain);
    } else if (PyTuple_CheckExact(o)) {
      v = list(o, io::List::Tuple);
    } else if (type == size_type) {
      v = list(o, io::List::Size);
    } else if (type == &PySet_Type) {
      v = list(o, io::List::Set);
    } else if (PyFrozenSet_CheckExact(o)) {
      v = list(o, io::List::FrozenSet);
    } else if (PyDict_CheckExact(o)) {
      v = dict(o, io::Dict::Plain);
    } else if (PyODict_CheckExact(o)) {
      v = dict(o, io::Dict::Ordered);
    } else if (reinterpret_cast<PyObject*>(type) == counter_.get()) {
      v = dict(o, io::Dict::Counter);
    } else {
      refuse(o, advice(o));
    }
    // The object stays alive, as does its address: temporaries made below would come and go.
    kept_.emplace_back(Py_NewRef(o));
    done_.emplace(o, v);
    return v;
  }

 private:
  struct Step {
    PyObject* key;  // borrowed; null: the position
    Py_ssize_t position;
    const char* attribute;
  };

  std::string place() const {
    std::string s = "obj";
    size_t shown = std::min<size_t>(path_.size(), 12);
    for (size_t i = 0; i < shown; ++i) {
      const Step& step = path_[i];
      if (step.attribute)
        s += std::string(".") + step.attribute;
      else
        s += "[" + (step.key ? text_of(step.key) : std::to_string(step.position)) + "]";
    }
    return s + (shown < path_.size() ? "..." : "");
  }

  [[noreturn]] void refuse(PyObject* o, const std::string& what_to_do) {
    std::string type = Py_TYPE(o)->tp_name;
    raise(PyExc_TypeError, str_cat("save: ", place(), " is of type ", type, ", which files do not hold; ", what_to_do));
  }

  template <class F>
  auto below(Step step, F&& f) {
    path_.push_back(step);
    auto v = f();
    path_.pop_back();
    return v;
  }

  static Value integer(PyObject* o) {
    int overflow = 0;
    long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return {int64_t(i)};
    Own bits(checked(PyObject_CallMethod(o, "bit_length", nullptr)));
    Own to_bytes(checked(PyObject_GetAttrString(o, "to_bytes")));
    Own args(checked(Py_BuildValue("(ns)", Py_ssize_t(PyLong_AsSsize_t(bits.get()) / 8 + 1), "little")));
    Own named(checked(Py_BuildValue("{sO}", "signed", Py_True)));
    Own raw(checked(PyObject_Call(to_bytes.get(), args.get(), named.get())));
    return {std::make_shared<const io::BigInt>(
        io::BigInt{std::string(PyBytes_AS_STRING(raw.get()), size_t(PyBytes_GET_SIZE(raw.get())))})};
  }

  io::Str text(PyObject* o) {
    Py_ssize_t n;
    const char* s = PyUnicode_AsUTF8AndSize(o, &n);
    if (!s) {
      PyErr_Clear();
      raise(PyExc_ValueError, str_cat("save: ", place(),
                                      " is a string with lone surrogates, which is no UTF-8 text; save "
                                      "it as bytes"));
    }
    return std::make_shared<const std::string>(s, size_t(n));
  }

  static Value bytes(const char* data, Py_ssize_t n, bool array) {
    return {std::make_shared<const io::Bytes>(io::Bytes{std::string(data, size_t(n)), array})};
  }

  Value list(PyObject* o, io::List::Kind kind) {
    auto v = std::make_shared<io::List>();
    v->kind = kind;
    Own items(checked(PySequence_List(o)));
    kept_.emplace_back(Py_NewRef(items.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* item = PyList_GET_ITEM(items.get(), i);
      v->items.push_back(
          below({nullptr, i, nullptr}, [&] { return kind >= io::List::Set ? key(item) : convert(item); }));
    }
    return {v};
  }

  // Keys are told apart by value; what is told apart by identity would be another key after loading.
  Value key(PyObject* o) {
    if (is_tensor(o) || PyByteArray_Check(o)) refuse(o, "keys and items of sets must be plain values");
    return convert(o);
  }

  Value dict(PyObject* o, io::Dict::Kind kind) {
    auto v = std::make_shared<io::Dict>();
    v->kind = kind;
    Own items(checked(PyMapping_Items(o)));
    kept_.emplace_back(Py_NewRef(items.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      PyObject* k = PyTuple_GET_ITEM(pair, 0);
      Value name = below({k, 0, nullptr}, [&] { return key(k); });
      v->items.emplace_back(std::move(name),
                            below({k, 0, nullptr}, [&] { return convert(PyTuple_GET_ITEM(pair, 1)); }));
    }
    if (kind != io::Dict::Ordered) return {v};
    Own attributes_of(checked(PyObject_GetAttrString(o, "__dict__")));
    attributes(v->attributes, attributes_of.get());
    return {v};
  }

  void attributes(std::vector<std::pair<io::Str, Value>>& to, PyObject* dict) {
    Own items(checked(PyDict_Items(dict)));
    kept_.emplace_back(Py_NewRef(items.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      io::Str name = text(PyTuple_GET_ITEM(pair, 0));
      to.emplace_back(name, below({nullptr, 0, name->c_str()}, [&] { return convert(PyTuple_GET_ITEM(pair, 1)); }));
    }
  }

  Value tensor(PyObject* o) {
    auto v = std::make_shared<io::TensorItem>();
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    if (type == loaded("strata.nn.parameter", "Parameter"))
      v->kind = io::TensorItem::Parameter;
    else if (type == loaded("strata.nn.parameter", "Buffer"))
      v->kind = io::TensorItem::Buffer;
    else if (type != tensor_class)
      refuse(o, advice(o));
    check_reading("save");
    v->tensor = tensor_of(o);
    if (v->tensor.is_meta())
      raise(PyExc_ValueError, str_cat("save: ", place(), " has a shape but no data (device meta); fill it first"));
    v->requires_grad = v->tensor.requires_grad();
    if (PyObject* dict = reinterpret_cast<PyTensor*>(o)->dict) attributes(v->attributes, dict);
    return {v};
  }

  Own collections_, counter_;
  std::vector<Step> path_;
  std::unordered_map<PyObject*, Value> done_;
  std::vector<Own> kept_;
};

}  // namespace

io::Value to_value(PyObject* object) { return Converter().convert(object); }

}  // namespace strata::py
