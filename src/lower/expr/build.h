// Builder: abstract syntax -> graph. Types every expression, promotes, inlines functions of the mathematics text,
// takes complex values apart. One builder makes one kernel. For lower/ only; others call build_kernel.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lower/expr/expr.h"
#include "lower/ir/ir.h"
#include "lower/math/library.h"

namespace strata::lower {

// Makes the loop IR of `desc` for tensors of `dtype`. Raises Value for a text that makes no sense.
Kernel build_kernel(const KernelDesc& desc, DType dtype);

struct Value {
  enum Kind : uint8_t { Number, Real, Complex };  // a number has no type yet
  Kind kind = Number;
  Literal number;
  int re = -1, im = -1;
};

bool combine_of(const std::string& name, Combine& out);  // "sum"; false for what is no reduction

class Builder {
 public:
  Builder(const KernelDesc& desc, DType dtype);
  Kernel run();

  // The graph before it is divided into passes: the nodes of each output (storage types; the second is an imaginary
  // part). kernel() then has operands and scalars.
  std::vector<std::array<int, 2>> build();
  const Kernel& kernel() const { return kernel_; }

  Graph g;

  // build_expr.cpp: types and operators
  Value eval(const Expr& e);
  Value call(const Expr& e) { return call(e, eval_all(e.args)); }
  DType type_of(const Value& v) const;  // of a number: the type it takes on its own
  DType join(const Value& a, const Value& b) const;
  DType number_type() const;  // what bools and free integers become: the compute type's component, or I32
  DType float_type(const Value& v) const;
  Value cast(const Value& v, DType to);  // total conversion, also to and from complex
  int node(const Value& v);              // of a real value or number
  int condition(const Value& v);         // as a Bool node
  Value select(int condition, const Value& a, const Value& b, Op op = Op::Select);
  Value binary(const std::string& op, const Value& a, const Value& b);
  std::optional<uint64_t> largest(int v) const;
  Value shift(const std::string& op, const Value& a, const Value& b);
  Value unary(const std::string& op, const Value& a);
  Value apply(const Function& f, const std::vector<Value>& args);
  Value apply(const char* function, const std::vector<Value>& args);

  // build_repeat.cpp: values that a loop carries
  Value repeat(const Expr& e);
  Value carry_start(const Expr& e, const std::string& name, Carry& carry);
  void carry_next(const Expr& e, const Value& like, Carry& carry);
  Value carried_number(Op op, const Value& like, int carry, size_t first);

  // build_calls.cpp: functions by name
  std::vector<Value> eval_all(const std::vector<ExprPtr>& args);
  Value call(const Expr& e, const std::vector<Value>& args);
  const Function* overload(const std::string& name, const std::vector<Value>& args) const;
  bool reduction(const Expr& e, const std::vector<Value>& args, Value& out);
  Value reduce(const Expr& e, Combine c, Value v, Reduction how);  // how: all but combine, accumulator and value[0]
  int identity(Combine c, DType t);
  Value divide(const std::string& name, const Value& a, const Value& b);
  int abs(int v);
  int bits(int v);       // the signed integer of a float's bits
  int from_bits(int v);  // and back

  // complex.cpp: arithmetic of pairs
  Value complex_binary(const std::string& op, const Value& a, const Value& b);

  static Value real(int v) { return {Value::Real, {}, v, -1}; }
  static Value pair(int re, int im) { return {Value::Complex, {}, re, im}; }
  static Value number(const Literal& l) { return {Value::Number, l, -1, -1}; }

  // What a builder of operands at places gives to build(): names that stand for values before the first line.
  class Operands {
   public:
    virtual ~Operands() = default;
    virtual bool value(Builder& b, const Expr& e, Value& out) = 0;  // of an expression that it knows: a name, a place
  };
  Operands* operands = nullptr;
  // Words of the generator's stream are computed, element i's from its number; `seed` and `offset` follow the scalars.
  // Otherwise they are operands, made in blocks by the caller.
  bool streams = false;
  // Of each output of a half type, once built: its value before it was rounded. Else -1.
  std::vector<int> unrounded;

  [[noreturn]] void fail(const Expr* at, const std::string& message) const;

 private:
  Value lookup(const Expr& e);
  DType complex_of_all(const std::vector<Value>& args) const;
  void name(const Value& v, const std::string& name);
  void read_operands();
  void load_inputs();
  std::vector<std::array<int, 2>> output_nodes();

  const KernelDesc& desc_;
  DType dtype_, context_;  // context_: compute type of the kernel, or of the function being inlined
  Kernel kernel_;
  std::vector<Operand> stream_;  // operands that are computed so
  std::map<std::string, Value> values_;
  std::vector<std::string> path_;  // functions being inlined
  const Expr* at_ = nullptr;       // call being built, for errors
};

}  // namespace strata::lower
