// x[...] and x[...] = v. Ints, slices, None and Ellipsis make views at once; bools, masks, integer tensors and lists
// are gathered and go to aten::index or aten::index_put_ together.
#include <algorithm>

#include "bind/args/convert.h"
#include "bind/args/parse.h"
#include "bind/tensor/methods.h"
#include "core/promote.h"
#include "dispatch/seen.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/view.h"

namespace strata::py {

namespace {

bool is_integer(PyObject* o) { return !PyBool_Check(o) && (PyLong_Check(o) || (PyIndex_Check(o) && !is_tensor(o))); }

[[noreturn]] void raise_invalid(PyObject* o) {
  raise(PyExc_IndexError, str_cat("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
                                  "valid indices (got ",
                                  Py_TYPE(o)->tp_name, ")"));
}

[[noreturn]] void raise_too_many(const Tensor& t) {
  raise(PyExc_IndexError, str_cat("too many indices for tensor of dimension ", t.dim()));
}

// Sizes of dims of the original tensor are in the texts; `shown` is the dim as the user counts it.
Tensor select(const Tensor& t, int64_t dim, int64_t index, int64_t shown) {
  int64_t size = t.sizes()[dim];
  if (index < -size || index >= size)
    raise(PyExc_IndexError, str_cat("index ", index, " is out of bounds for dimension ", shown, " with size ", size));
  return ops::select(t, dim, index);
}

struct Range {
  int64_t start, stop, step;
  bool whole(int64_t size) const { return start == 0 && stop >= size && step == 1; }
};

Range range_of(PyObject* slice) {
  Py_ssize_t start, stop, step;
  checked(PySlice_Unpack(slice, &start, &stop, &step));
  if (step < 1) raise(PyExc_ValueError, "step must be greater than zero");
  return {start, stop, step};
}

Tensor sliced(const Tensor& t, int64_t dim, const Range& r) { return ops::slice(t, dim, r.start, r.stop, r.step); }

// One index for a dim of size 1 that was inserted for a bool.
Tensor bool_index(bool value) {
  Tensor t = make_tensor(value ? IntArrayRef(int64_t(1)) : IntArrayRef(int64_t(0)), DType::I64);
  if (value) *t.data<int64_t>() = 0;
  return t;
}

// An index given as a list or an array. Only bools and bytes keep their type.
Tensor tensor_of_sequence(PyObject* o) {
  Tensor t = tensor_from_data(o, std::nullopt, std::nullopt);
  return t.dtype() == DType::Bool || t.dtype() == DType::U8 ? t : converted(t, DType::I64, std::nullopt);
}

Tensor usable(const Tensor& t) {
  switch (t.dtype()) {
    case DType::I64:
    case DType::Bool:
      return t;
    case DType::I32:
      return converted(t, DType::I64, std::nullopt);
    case DType::U8:
      return converted(t, DType::Bool, std::nullopt);
    default:
      raise(PyExc_IndexError, "tensors used as indices must be long, int, byte or bool tensors");
  }
}

bool is_array_like(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) || is_numpy_kind(o, "ndarray") ||
         (PySequence_Check(o) && !PyBytes_Check(o) && !PyUnicode_Check(o));
}

// What one item of an index means; tensors made of lists are owned here.
struct Item {
  enum Kind { Int, Slice, Ellipsis, None, Bool, Index, Mask } kind;
  int64_t value = 0;
  Range range{};
  Tensor tensor;
  int64_t dims() const {
    if (kind == Mask) return tensor.dim();
    return kind == Int || kind == Slice || kind == Index ? 1 : 0;
  }
};

// writes: where operators are recorded, a place that a tensor of no dims tells stays in the tensor.
Item item_of(PyObject* o, bool writes) {
  if (PyLong_CheckExact(o)) return {Item::Int, to_Int(o), {}, {}};
  if (PySlice_Check(o)) return {Item::Slice, 0, range_of(o), {}};
  if (o == Py_Ellipsis) return {Item::Ellipsis, 0, {}, {}};
  if (o == Py_None) return {Item::None, 0, {}, {}};
  if (PyBool_Check(o)) return {Item::Bool, o == Py_True, {}, {}};
  Tensor t;
  if (is_tensor(o)) {
    t = tensor_of(o);
  } else if (is_numpy_kind(o, "bool_")) {
    raise_invalid(o);
  } else if (is_numpy_kind(o, "ndarray")) {
    t = tensor_of_sequence(o);
  } else if (is_integer(o)) {
    return {Item::Int, to_Int(o), {}, {}};
  } else if (is_array_like(o)) {
    t = tensor_of_sequence(o);
  } else if (PyUnicode_Check(o) || PyBytes_Check(o)) {
    raise(PyExc_TypeError, str_cat("new(): invalid data type '", Py_TYPE(o)->tp_name, "'"));
  } else {
    raise_invalid(o);
  }
  if (t.dim() == 0 && is_integral(t.dtype(), true)) {
    if (t.dtype() == DType::Bool || t.dtype() == DType::U8) return {Item::Bool, ops::item(t).to_bool(), {}, {}};
    // Nor is one asked that stands for several (vmap).
    if ((!writes || !recording_here()) && !t.keys().has(Key::Python)) return {Item::Int, ops::item(t).to_int(), {}, {}};
  }
  t = usable(t);
  return {t.dtype() == DType::Bool ? Item::Mask : Item::Index, 0, {}, std::move(t)};
}

// A list stands for a tuple when it holds what only a tuple of indices can hold.
bool is_tuple_like(PyObject* o) {
  if (PyTuple_Check(o)) return true;
  if (!PyList_Check(o) || PyList_GET_SIZE(o) >= 32) return false;
  Items items(o);
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    PyObject* x = items[i];
    if (is_tensor(x) || PySlice_Check(x) || x == Py_None || x == Py_Ellipsis || PyList_Check(x) || PyTuple_Check(x) ||
        is_numpy_kind(x, "ndarray"))
      return true;
  }
  return false;
}

// The view that the plain items make, and the tensor indices into it: undefined where a dim is kept whole. A mask
// stands for as many dims as it has.
struct Located {
  Tensor view;
  std::vector<Tensor> indices;
};

Located locate(const Tensor& self, PyObject* index, bool writes) {
  std::vector<Item> items;
  if (is_tuple_like(index)) {
    Items given(index);
    items.reserve(given.size());
    for (Py_ssize_t i = 0; i < given.size(); ++i) items.push_back(item_of(given.own(i).get(), writes));
  } else {
    items.push_back(item_of(index, writes));
  }
  int64_t specified = 0;
  for (const Item& item : items) specified += item.dims();
  if (specified > self.dim()) {
    if (self.dim() == 0 && items.size() == 1)
      raise(PyExc_IndexError,
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ "
            "to convert a 0-dim tensor to a number");
    raise_too_many(self);
  }
  Located r{self, {}};
  int64_t dim = 0, shown = 0, covered = 0, rest = self.dim() - specified;
  auto record = [&](const Tensor& t, int64_t dims) {
    for (; covered < dim; ++covered) r.indices.emplace_back();
    r.indices.push_back(t);
    covered += dims;
    dim += dims;
  };
  for (const Item& item : items) {
    switch (item.kind) {
      case Item::Int:
        r.view = select(r.view, dim, item.value, shown++);
        break;
      case Item::Slice:
        if (!item.range.whole(r.view.sizes()[dim])) r.view = sliced(r.view, dim, item.range);
        ++dim, ++shown;
        break;
      case Item::Ellipsis:
        // A second ellipsis finds no dims left.
        dim += rest;
        shown += rest;
        rest = 0;
        break;
      case Item::None:
        r.view = ops::unsqueeze(r.view, dim++);
        break;
      case Item::Bool:
        r.view = ops::unsqueeze(r.view, dim);
        record(bool_index(item.value != 0), 1);
        break;
      case Item::Index:
        record(item.tensor, 1);
        ++shown;
        break;
      case Item::Mask:
        record(item.tensor, item.tensor.dim());
        shown += item.tensor.dim();
        break;
    }
  }
  return r;
}

// The indices where the tensor lies: those on the CPU may come along.
const std::vector<Tensor>& beside(Located& at) {
  if (const Device there = at.view.device(); STRATA_UNLIKELY(there.type > 1))
    for (Tensor& t : at.indices)
      if (t.defined() && t.device().is_cpu()) t = converted(t, std::nullopt, there);
  return at.indices;
}

Tensor without_leading_ones(const Tensor& t, int64_t keep) {
  size_t first = 0;
  while (int64_t(t.dim() - first) > keep && t.sizes()[first] == 1) ++first;
  if (first == 0) return t;
  return ops::view(t, t.sizes().slice(first, t.dim() - first));
}

void copy_into(const Tensor& to, const Tensor& value) {
  Tensor v = without_leading_ones(value, to.dim());
  ops::copy_(to, v.sizes() == to.sizes() ? v : ops::expand(v, to.sizes()));
}

// The mask, beside the view's dims, where there is no other index. Undefined otherwise.
Tensor lone_mask(const Located& at) {
  Tensor mask;
  for (const Tensor& t : at.indices) {
    if (!t.defined()) continue;
    if (mask.defined() || t.dtype() != DType::Bool) return {};
    mask = t;
  }
  if (!mask.defined()) return {};
  const int64_t before = int64_t(at.indices.size()) - 1;  // a mask is the last
  if (!at.indices.back().defined() || before + mask.dim() > at.view.dim()) return {};
  for (int64_t d = 0; d < mask.dim(); ++d)
    if (mask.sizes()[d] != at.view.sizes()[before + d]) return {};
  for (int64_t d = before + mask.dim(); d < at.view.dim(); ++d) mask = ops::unsqueeze(mask, -1);
  return mask;
}

void assign(const Tensor& self, PyObject* index, PyObject* value) {
  const bool number = !is_tensor(value);
  if (number && !is_number(value))
    raise(PyExc_TypeError, str_cat("can't assign a ", Py_TYPE(value)->tp_name, " to a strata.",
                                   scalar_type_name(self.dtype()), "Tensor"));
  if (!number) refuse_sparse(value, "setitem");
  if (index == Py_False) return;
  Located at = PyLong_CheckExact(index) && self.dim() > 0 ? Located{select(self, 0, to_Int(index), 0), {}}
               : index == Py_Ellipsis                     ? Located{self, {}}
               : index == Py_True                         ? Located{ops::unsqueeze(self, 0), {}}
                                                          : locate(self, index, true);
  if (at.indices.empty()) {
    if (number) {
      STRATA_CHECK(
          !overlaps_itself(at.view),
          "__setitem__: unsupported operation: more than one element of the written-to tensor refers to a single "
          "memory location. Please clone() the tensor before performing the operation.");
      if (self.dtype() == DType::F16 || self.dtype() == DType::BF16)  // rounds to infinity, as PyTorch's does
        ops::fill_(at.view, ops::scalar_tensor(to_Scalar(value), self.dtype(), self.device()));
      else
        ops::fill_(at.view, to_Scalar(value));
    } else {
      copy_into(at.view, tensor_of(value));
    }
    return;
  }
  Tensor v;
  if (number) {
    v = ops::scalar_tensor(to_Scalar(value), self.dtype(), self.device());
  } else {
    v = without_leading_ones(tensor_of(value), 0);
  }
  // What is recorded knows no number of places: one value needs none. (Its gradient is added up in another order.)
  if (recording_here() && v.dim() == 0 && !(grad_enabled() && v.requires_grad()))
    if (const Tensor mask = lone_mask(at); mask.defined()) return void(ops::masked_fill_(at.view, mask, v));
  ops::index_put_(at.view, beside(at), v);
}

// ---- slots
PyObject* get_item_body(PyObject* self, PyObject* const* args, Py_ssize_t, PyObject*) {
  const Tensor& t = tensor_of(self);
  PyObject* index = args[0];
  if (PyLong_CheckExact(index) && t.dim() > 0) return wrap(select(t, 0, to_Int(index), 0));
  if (PySlice_Check(index) && t.dim() > 0) return wrap(sliced(t, 0, range_of(index)));
  Located at = locate(t, index, false);
  if (!at.indices.empty()) return wrap(ops::index(at.view, beside(at)));
  return wrap(at.view.is_same(t) ? view_of(t) : at.view);
}

PyObject* set_item_body(PyObject* self, PyObject* const* args, Py_ssize_t, PyObject*) {
  assign(tensor_of(self), args[0], args[1]);
  Py_RETURN_NONE;
}

PyObject* get_item(PyObject* self, PyObject* index) {
  return method<"__getitem__", get_item_body>(self, &index, 1, nullptr);
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  PyObject* args[] = {index, value};
  PyObject* done = method<"__setitem__", set_item_body>(self, args, 2, nullptr);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

Py_ssize_t length(PyObject* self) {
  const Tensor& t = tensor_of(self);
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return t.sizes()[0];
}

PyObject* iterate(PyObject* self) {
  if (tensor_of(self).dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return nullptr;
  }
  return guarded([&] {
    Own rows(checked(find_entry("unbind").method(self, nullptr, 0, nullptr)));
    return checked(PyObject_GetIter(rows.get()));
  });
}

}  // namespace

Tensor view_of(const Tensor& t) { return ops::alias(t); }

std::vector<PyType_Slot> index_slots() {
  return {
      {Py_mp_subscript, reinterpret_cast<void*>(get_item)},
      {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
      {Py_mp_length, reinterpret_cast<void*>(length)},
      {Py_tp_iter, reinterpret_cast<void*>(iterate)},
  };
}

// The slots belong to the type; nothing is added to the module.
void init_indexing(PyObject*) {}

}  // namespace strata::py
