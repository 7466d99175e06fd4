// Values to Python objects.
#include <unordered_map>

#include "bind/io/io.h"
#include "bind/types/types.h"
#include "grad/engine/variable.h"

namespace strata::py {

namespace {

using io::Value;

class Builder {
 public:
  explicit Builder(const io::Source& source) : source_(source) {
    collections_ = Own(checked(PyImport_ImportModule("collections")));
  }

  PyObject* build(const Value& v) {
    if (v.is_none()) Py_RETURN_NONE;
    if (auto* b = v.get<bool>()) return PyBool_FromLong(*b);
    if (auto* i = v.get<int64_t>()) return checked(PyLong_FromLongLong(*i));
    if (auto* d = v.get<double>()) return checked(PyFloat_FromDouble(*d));
    if (auto* c = v.get<std::complex<double>>()) return checked(PyComplex_FromDoubles(c->real(), c->imag()));
    if (v.str()) return text(*v.str());
    if (auto* t = v.get<DType>()) return wrap(*t);
    if (auto* d = v.get<Device>()) return wrap(*d);
    if (v.get<io::StridedLayout>()) return wrap_layout();
    if (auto* big = v.get<std::shared_ptr<const io::BigInt>>()) return integer((*big)->bytes);
    if (auto* bytes = v.get<std::shared_ptr<const io::Bytes>>()) {
      const std::string& s = (*bytes)->data;
      return checked((*bytes)->array ? PyByteArray_FromStringAndSize(s.data(), Py_ssize_t(s.size()))
                                     : PyBytes_FromStringAndSize(s.data(), Py_ssize_t(s.size())));
    }
    if (const io::List* list = v.list()) return once(list, [&] { return build_list(*list); });
    if (const io::Dict* dict = v.dict()) return once(dict, [&] { return build_dict(*dict); });
    if (const io::TensorItem* tensor = v.tensor()) return once(tensor, [&] { return build_tensor(*tensor); });
    throw_error(ErrorKind::Internal, "load: a value of an unknown kind");
  }

 private:
  template <class F>
  PyObject* once(const void* node, F&& make) {
    auto known = done_.find(node);
    if (known == done_.end()) known = done_.emplace(node, Own(make())).first;
    return Py_NewRef(known->second.get());
  }

  static PyObject* text(const std::string& s) {
    return checked(PyUnicode_DecodeUTF8(s.data(), Py_ssize_t(s.size()), nullptr));
  }

  static PyObject* integer(const std::string& bytes) {
    Own keywords(checked(Py_BuildValue("{s:O}", "signed", Py_True)));
    Own args(checked(Py_BuildValue("(y#s)", bytes.data(), Py_ssize_t(bytes.size()), "little")));
    Own function(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyLong_Type), "from_bytes")));
    return checked(PyObject_Call(function.get(), args.get(), keywords.get()));
  }

  PyObject* build_list(const io::List& list) {
    auto n = Py_ssize_t(list.items.size());
    if (list.kind == io::List::Size) {
      DimVec sizes;
      for (const Value& item : list.items) sizes.push_back(*item.get<int64_t>());
      return make_size(sizes);
    }
    bool tuple = list.kind == io::List::Tuple;
    Own items(checked(tuple ? PyTuple_New(n) : PyList_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = build(list.items[size_t(i)]);
      if (tuple)
        PyTuple_SET_ITEM(items.get(), i, item);
      else
        PyList_SET_ITEM(items.get(), i, item);
    }
    if (list.kind == io::List::Set) return checked(PySet_New(items.get()));
    if (list.kind == io::List::FrozenSet) return checked(PyFrozenSet_New(items.get()));
    return items.release();
  }

  PyObject* build_dict(const io::Dict& dict) {
    const char* type = dict.kind == io::Dict::Ordered ? "OrderedDict" : "Counter";
    Own result(
        checked(dict.kind == io::Dict::Plain ? PyDict_New() : PyObject_CallMethod(collections_.get(), type, nullptr)));
    for (const auto& [key, item] : dict.items) {
      Own k(build(key)), v(build(item));
      checked(PyObject_SetItem(result.get(), k.get(), v.get()));
    }
    set_attributes(result.get(), dict.attributes);
    return result.release();
  }

  PyObject* build_tensor(const io::TensorItem& item) {
    PyObject* type = tensor_class;
    if (item.kind != io::TensorItem::Plain) {
      if (!nn_) nn_ = Own(checked(PyImport_ImportModule("strata.nn.parameter")));
      Own found(
          checked(PyObject_GetAttrString(nn_.get(), item.kind == io::TensorItem::Parameter ? "Parameter" : "Buffer")));
      type = found.get();  // the module keeps it
    }
    if (item.requires_grad) set_requires_grad(item.tensor, true);
    Own o(wrap_as(item.tensor, reinterpret_cast<PyTypeObject*>(type)));
    if (item.kind == io::TensorItem::Buffer) checked(PyObject_SetAttrString(o.get(), "persistent", Py_True));
    set_attributes(o.get(), item.attributes);
    return o.release();
  }

  // A file may add attributes, but not hide those of the class.
  void set_attributes(PyObject* o, const std::vector<std::pair<io::Str, Value>>& list) {
    for (const auto& [name, item] : list) {
      Own n(text(*name)), v(build(item));
      bool hides = PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(o)), n.get()) == 1;
      if (hides)
        source_.refuse(str_cat("sets the attribute '", *name, "', which would hide one of ", Py_TYPE(o)->tp_name));
      checked(PyObject_SetAttr(o, n.get(), v.get()));
    }
  }

  const io::Source& source_;
  Own collections_, nn_;
  std::unordered_map<const void*, Own> done_;
};

}  // namespace

PyObject* from_value(const io::Value& value, const io::Source& source) { return Builder(source).build(value); }

}  // namespace strata::py
