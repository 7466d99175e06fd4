// The one graph of Strata: nodes whose targets are operators of the table, with blocks for `if` and `loop`. It says
// nothing of how it came to be: a recording makes one, a text makes one.
//
// Values are numbered through the whole graph. Each has one definition: a parameter of a block or a result of a node. A
// value stands for a tensor object, so views share memory and operators that write change what their operand is; the
// pass that takes that away says so (ir/verify.h lists what is legal when).
//
// Spec, which verify() executes:
//   - a value is defined before it is used, in the same block or one around it;
//   - a call has an argument for each of its schema, and a result for each tensor that it returns;
//   - where the schema has a float may stand a value of one float64: a slot, read when the call is made;
//   - `if` has a condition and two blocks without parameters, whose results are as many as the node's;
//   - `loop` has a count, a condition and what it carries, and one block: its parameters are the turn's number (an
//     int) and what is carried, its results a condition and what is carried on; the node's results are the last ones;
//   - a type says what every run gives: kind, dtype, device, sizes, strides;
//   - in a program (instantiate() makes a graph of it), where an int stands, or several in a list, may stand
//   expressions of
//     sizes of values (ir/sizes.h), sizes of a type may vary, and `check` says what of sizes has to hold.
#pragma once
#include <string>
#include <vector>

#include "base/span.h"
#include "core/sym.h"
#include "dispatch/operator.h"

namespace strata::ir {

using Id = int32_t;
constexpr Id kNone = -1;  // in place of a value: None, an undefined tensor

struct Type {
  enum Kind : uint8_t { Tensor, Int, Float, Bool };
  Kind kind = Tensor;
  DType dtype = DType::F32;
  Device device;
  SmallVec<SymInt, 5> sizes, strides;  // of elements; expressions of a SymContext that outlives the graph, or numbers
  uint64_t varies = 0;                 // by dim: in a program, its size is that of the export alone
  bool number = false;                 // a tensor that stands for a Python number: it takes no part in promotion
};
Type type_of(const Tensor& t);
// Whether a tensor is what the type says. Symbolic sizes are compared by their hints.
bool fits(const Tensor& t, const Type& type);
std::string to_string(const Type& type);  // "f32[2, 3]", "f32[2, 3; 1, 2]" with strides where they are not contiguous

struct Value {
  Type type;
  std::string name;  // where it comes from, for people: "x", "model.0.weight"; may be empty
};

struct Arg {
  enum Kind : uint8_t { Constant, One, List };
  Kind kind = Constant;
  IValue constant;
  std::vector<Id> values;          // of a constant with expressions: the values whose sizes these name
  std::vector<std::string> sizes;  // of a constant: the expression in the place of each of its ints, or ""
  static Arg one(Id value) { return {One, {}, {value}, {}}; }
  static Arg list(std::vector<Id> values) { return {List, {}, std::move(values), {}}; }
};

struct Node;

struct Block {
  std::vector<Id> params;
  std::vector<Node> nodes;
  std::vector<Id> results;
};

struct Node {
  enum Kind : uint8_t { Call, Constant, If, Loop, Check };
  Kind kind = Call;
  Operator* op = nullptr;  // of a call
  std::vector<Arg> args;
  std::vector<Id> results;  // kNone: an undefined tensor
  std::vector<Block> blocks;
  Tensor constant;  // of a constant: a Python number as a tensor
  // How gradients went when it was recorded: through it; not, since they were off; by a derivative that somebody gave
  // (autograd.Function), or as a part of that one, or of a hook; or it is an alias for a backward, which stands for its
  // operand. Runs above autograd heed it. Sum: through it; a backward adds two gradients of one value, of one
  // that is asked for where it is Total.
  enum Gradient : uint8_t { Through, Off, Own, Saved, Sum, Total };
  Gradient gradient = Through;
  std::string span;  // "model.py:12 in forward"; passes keep it
};

struct Graph {
  std::vector<Value> values;
  Block body;
  // Tensors that the program found outside of its arguments, as parameters of a model: the last parameters of the body.
  // A run uses these tensors as they are then.
  std::vector<Tensor> captured;

  Id add(Type type, std::string name = {});
  size_t inputs() const { return body.params.size() - captured.size(); }
};

// Calls f with each value that a node reads, blocks included.
template <class F>
void each_use(const Node& node, F&& f) {
  for (const Arg& a : node.args)
    for (Id v : a.values)
      if (v != kNone) f(v);
  for (const Block& b : node.blocks) {
    for (const Node& n : b.nodes) each_use(n, f);
    for (Id v : b.results)
      if (v != kNone) f(v);
  }
}

// Whether a value of this type may stand for a float of a schema.
bool is_slot(const Type& type);
bool has_slots(const Node& call);
size_t count_nodes(const Block& block);  // those of inner blocks, too

// The text of a graph, which parses back to an equal one but for the captured tensors' values.
std::string print(const Graph& graph);
std::string print(const IValue& value);  // as an argument of a call

// Runs a graph on tensors that fit the types of its inputs, which it may write. Below autograd: nothing is recorded for
// a backward. Raises Value for tensors that do not fit.
std::vector<Tensor> run(const Graph& graph, TensorList inputs);
// The same error, for others that run it.
void check_inputs(const Graph& graph, TensorList inputs);

// The same under the keys of this thread, and telling what each value was; for those that look on.
class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph), values_(graph.values.size()) {}
  virtual ~Interpreter() = default;
  std::vector<Tensor> run(TensorList params);  // captured ones too

 protected:
  // A call whose arguments are on the stack; leaves its results there.
  virtual void call(const Node& node, Stack& stack);
  // By what their conditions hold.
  virtual void branch(const Node& n);
  virtual void loop(const Node& n);
  const IValue& value(Id v) const { return values_[size_t(v)]; }
  IValue read(Id v) const;
  void give(const std::vector<Id>& to, const std::vector<IValue>& values);
  std::vector<IValue> block(const Block& b);
  int64_t size_of(Id value, int64_t dim) const;

 private:
  void node(const Node& n);
  // What a node gave, where its type does not let it vary.
  virtual void check_result(const Node&, Id) {}
  const Graph& graph_;
  std::vector<IValue> values_;
};

}  // namespace strata::ir
