// Arithmetic, comparisons and conversions to Python numbers. Each slot calls the table's entry of the same meaning; an
// operand of a foreign type gives NotImplemented, so that its own type is asked next.
#include "bind/args/convert.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"
#include "strata/generated/ops/copy.h"

namespace strata::py {

namespace {

enum Op : int {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  MatMul,
  And,
  Or,
  Xor,
  LShift,
  RShift,
  IAdd,
  ISub,
  IMul,
  IDiv,
  IFloorDiv,
  IMod,
  IPow,
  IAnd,
  IOr,
  IXor,
  ILShift,
  IRShift,
  RSub,
  Reciprocal,
  Neg,
  Abs,
  Not,
  Lt,
  Le,
  Eq,
  Ne,
  Gt,
  Ge,
  OpCount
};
constexpr const char* op_names[OpCount] = {"add",
                                           "sub",
                                           "mul",
                                           "div",
                                           "floor_divide",
                                           "remainder",
                                           "pow",
                                           "matmul",
                                           "bitwise_and",
                                           "bitwise_or",
                                           "bitwise_xor",
                                           "bitwise_left_shift",
                                           "bitwise_right_shift",
                                           "add_",
                                           "sub_",
                                           "mul_",
                                           "div_",
                                           "floor_divide_",
                                           "remainder_",
                                           "pow_",
                                           "bitwise_and_",
                                           "bitwise_or_",
                                           "bitwise_xor_",
                                           "bitwise_left_shift_",
                                           "bitwise_right_shift_",
                                           "rsub",
                                           "reciprocal",
                                           "neg",
                                           "abs",
                                           "bitwise_not",
                                           "lt",
                                           "le",
                                           "eq",
                                           "ne",
                                           "gt",
                                           "ge"};
const Entry* entries[OpCount];

PyObject* lacking(Op op) {
  PyErr_Format(PyExc_NotImplementedError,
               "strata.%s: the operator table does not hold it yet; compose the result from other operators",
               op_names[op]);
  return nullptr;
}

PyObject* as_method(Op op, PyObject* self, PyObject* other) {
  const Entry* e = entries[op];
  if (STRATA_UNLIKELY(!e || !e->method)) return lacking(op);
  return e->method(self, &other, other ? 1 : 0, nullptr);
}

PyObject* as_function(Op op, PyObject* a, PyObject* b) {
  const Entry* e = entries[op];
  if (STRATA_UNLIKELY(!e || !e->function)) return lacking(op);
  PyObject* args[] = {a, b};
  return e->function(nullptr, args, 2, nullptr);
}

PyObject* or_not_implemented(PyObject* result) {
  if (STRATA_LIKELY(result != nullptr) || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject* reflected(Op op, PyObject* number, PyObject* tensor) {
  switch (op) {
    case Add:
    case Mul:
    case And:
    case Or:
    case Xor:
      return as_method(op, tensor, number);
    case Sub:
      return as_method(RSub, tensor, number);
    case Div: {
      PyObject* inverse = as_method(Reciprocal, tensor, nullptr);
      if (!inverse) return nullptr;
      PyObject* r = PyNumber_Multiply(inverse, number);  // which asks a NumPy array, too
      Py_DECREF(inverse);
      return r;
    }
    default:
      return as_function(op, number, tensor);
  }
}

template <Op op>
PyObject* binary(PyObject* a, PyObject* b) {
  return or_not_implemented(is_tensor(a) ? as_method(op, a, b) : reflected(op, a, b));
}
template <Op op>
PyObject* inplace(PyObject* a, PyObject* b) {
  return or_not_implemented(as_method(op, a, b));
}
template <Op op>
PyObject* unary(PyObject* a) {
  return as_method(op, a, nullptr);
}

PyObject* negative(PyObject* a) {
  if (tensor_of(a).dtype() == DType::Bool) {
    PyErr_SetString(
        PyExc_RuntimeError,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
        "use the `~` or `logical_not()` operator instead.");
    return nullptr;
  }
  return unary<Neg>(a);
}

PyObject* invert(PyObject* a) {
  DType dtype = tensor_of(a).dtype();
  if (is_differentiable(dtype)) {
    PyErr_SetString(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return nullptr;
  }
  return unary<Not>(a);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() of a Tensor takes no modulus; use strata.remainder on the result");
    return nullptr;
  }
  return binary<Pow>(a, b);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) { return inplace<IPow>(a, b); }

PyObject* inplace_matmul(PyObject* a, PyObject* b) { return binary<MatMul>(a, b); }

PyObject* positive(PyObject* a) {
  if (tensor_of(a).dtype() == DType::Bool) {
    PyErr_SetString(PyExc_RuntimeError, "positive: The `+` operator, on a bool tensor is not supported.");
    return nullptr;
  }
  return Py_NewRef(a);
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static constexpr Op ops[] = {Lt, Le, Eq, Ne, Gt, Ge};
  // Left to Python, whether one is the other would be asked.
  if (STRATA_UNLIKELY((op == Py_EQ || op == Py_NE) && is_array(b)))
    return or_not_implemented(
        guarded([&] { return as_method(ops[op], a, Own(wrap(tensor_over_array(b, false))).get()); }));
  return or_not_implemented(as_method(ops[op], a, b));
}

Scalar single(PyObject* o) {
  const Tensor& t = tensor_of(o);
  if (t.numel() != 1) raise(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  return ops::item(t);
}

int truth(PyObject* o) {
  bool value = false;
  PyObject* done = guarded([&] {
    const Tensor& t = tensor_of(o);
    STRATA_CHECK(t.numel() > 0, "Boolean value of Tensor with no values is ambiguous");
    STRATA_CHECK(t.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
    value = ops::item(t).to_bool();
    return Py_None;
  });
  return done ? value : -1;
}

PyObject* to_python_int(PyObject* o) {
  return guarded([&] {
    Scalar s = single(o);
    STRATA_CHECK(!s.is_complex() || s.to_complex().imag() == 0,
                 "value cannot be converted to type int64_t without overflow");
    if (s.is_integral(true)) return s.is_bool() ? wrap(int64_t(s.to_bool())) : wrap(s);
    return checked(PyLong_FromDouble(s.to_double()));
  });
}

PyObject* to_python_float(PyObject* o) {
  return guarded([&] {
    Scalar s = single(o);
    STRATA_CHECK(!s.is_complex() || s.to_complex().imag() == 0,
                 "value cannot be converted to type double without overflow");
    return wrap(s.is_complex() ? s.to_complex().real() : s.to_double());
  });
}

PyObject* to_index(PyObject* o) {
  return guarded([&] {
    const Tensor& t = tensor_of(o);
    if (t.numel() != 1 || !is_integral(t.dtype(), true))
      raise(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return wrap(ops::item(t).to_int());
  });
}

template <class F>
PyType_Slot slot(int id, F* f) {
  return {id, reinterpret_cast<void*>(f)};
}

}  // namespace

std::vector<PyType_Slot> number_slots() {
  for (int i = 0; i < OpCount; ++i) entries[i] = find_entry_or_null(op_names[i]);
  return {
      slot(Py_nb_add, binary<Add>),
      slot(Py_nb_subtract, binary<Sub>),
      slot(Py_nb_multiply, binary<Mul>),
      slot(Py_nb_true_divide, binary<Div>),
      slot(Py_nb_floor_divide, binary<FloorDiv>),
      slot(Py_nb_remainder, binary<Mod>),
      slot(Py_nb_power, power),
      slot(Py_nb_matrix_multiply, binary<MatMul>),
      slot(Py_nb_and, binary<And>),
      slot(Py_nb_or, binary<Or>),
      slot(Py_nb_xor, binary<Xor>),
      slot(Py_nb_lshift, binary<LShift>),
      slot(Py_nb_rshift, binary<RShift>),
      slot(Py_nb_inplace_add, inplace<IAdd>),
      slot(Py_nb_inplace_subtract, inplace<ISub>),
      slot(Py_nb_inplace_multiply, inplace<IMul>),
      slot(Py_nb_inplace_true_divide, inplace<IDiv>),
      slot(Py_nb_inplace_floor_divide, inplace<IFloorDiv>),
      slot(Py_nb_inplace_remainder, inplace<IMod>),
      slot(Py_nb_inplace_power, inplace_power),
      slot(Py_nb_inplace_matrix_multiply, inplace_matmul),
      slot(Py_nb_inplace_and, inplace<IAnd>),
      slot(Py_nb_inplace_or, inplace<IOr>),
      slot(Py_nb_inplace_xor, inplace<IXor>),
      slot(Py_nb_inplace_lshift, inplace<ILShift>),
      slot(Py_nb_inplace_rshift, inplace<IRShift>),
      slot(Py_nb_negative, negative),
      slot(Py_nb_positive, positive),
      slot(Py_nb_absolute, unary<Abs>),
      slot(Py_nb_invert, invert),
      slot(Py_nb_bool, truth),
      slot(Py_nb_int, to_python_int),
      slot(Py_nb_float, to_python_float),
      slot(Py_nb_index, to_index),
      slot(Py_tp_richcompare, compare),
  };
}

}  // namespace strata::py
