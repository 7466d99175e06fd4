// Loop IR. A kernel is operands, scalars and passes; a pass is a straight-line SSA list over one element of the index
// space, with stores and reductions as its effects. It says nothing of lanes, threads or dialects: a printer decides.
// Types are DType; half floats and bools in memory appear as U16 and U8, complex values as two nodes (re, im).
//
// Spec, which verify() executes; debug builds after passes are split, the build on every kernel of the table:
//   - arguments precede their users, and a node has as many as its operation; a leaf has none;
//   - arithmetic is of one type, comparisons give Bool of two of one type, what chooses has a Bool and two of its own
//     type; a loaded node has its operand's type of memory (storage_node_type), and so has a stored one;
//   - what is one value for the row (uniform) is made of such alone; a result per row is;
//   - a pass reads reductions and scratch rows of passes before it, and each scratch row is written once;
//   - a carry repeats by a Bool, and its values keep their types;
//   - only rows have reductions and several passes; each part of a result is written once.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/dtype.h"
#include "lower/desc.h"
#include "lower/ir/carry.h"

namespace strata::lower {

enum class Op : uint8_t {
  Const,    // imm: the value's bits
  Param,    // imm: which scalar; part: 1 for an imaginary part
  Load,     // imm: which input; part
  Scratch,  // imm: which scratch row
  Reduced,  // imm: which reduction; part: 1 for an imaginary part, or the index of argmax and argmin
  Index,    // logical index in the row, I64
  Length,   // elements of the row, I64
  Range,    // imm: which; the index that runs over it, I64 (ir/nest.h)
  Extent,   // imm: which range; its size, I64
  State,    // imm: which carry (ir/carry.h); part: which of its values, before the step
  Stride,   // imm: which operand, outputs first; part: which of its dims; elements, I64
  Neg,
  Not,
  Sqrt,
  Floor,
  Ceil,
  Trunc,
  Rint,
  Convert,  // exact or rounded once; the value is known to fit (the builder clamps), integers wrap
  Bitcast,
  WidenHalf,   // the F32 of a float16's U16
  NarrowHalf,  // and back, to nearest even; every NaN is one
  Add,
  Sub,
  Mul,
  Div,
  And,
  Or,
  Xor,
  Shl,
  Shr,  // amounts are known to be in range; Shr of a signed type keeps the sign
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Call,  // imm: Helper; a C function of one lane
  Fma,
  Select,  // arg: condition, then, else
  Rare,    // as Select; the printer may compute `then` only where some lane needs it
  At,  // imm: which operand, outputs first; part; arg: its element, and a Bool under which alone it is read (else 0)
  Carried,  // imm: which carry; part: which of its values, at its end or at the index at hand
  Check,    // imm: bits for the status word where arg is false; the value is arg
};

enum class Helper : uint8_t { Fmod, Div, Rem, FloorDiv, Mod, Pow };  // integer ones are total; Div and Rem truncate

struct Node {
  Op op;
  DType type;
  std::array<int, 3> arg{-1, -1, -1};
  uint64_t imm = 0;
  uint8_t part = 0;
  bool uniform = false;  // one value per call, not per element
  bool own = false;      // named by the kernel's text, not by a function that it calls
  int origin = -1;       // which of several expressions it came with first, where a graph is made of several
  std::string name{};    // as the expression calls it, or empty

  bool leaf() const { return op <= Op::Stride; }
  // Whether this call of a helper may find a divisor of 0.
  bool takes_status() const { return !is_float(type) && Helper(imm) != Helper::Pow; }
};

enum class Combine : uint8_t { Add, Mul, Max, Min, Or, And, ArgMax, ArgMin };  // numbers of kernel_abi.h

struct Reduction {
  Combine combine;
  DType accumulator;  // as in kernel_abi.h: complex accumulators have two values; Or and And are Bool, computed in U8
  std::array<int, 2> value{-1, -1};  // ArgMax and ArgMin in a nest: the second is what stands for the place, 0 or more
  std::string name;
  uint64_t over = 0;   // in a nest: the ranges that it reduces, a bit each; in order of their numbers, the last fastest
  uint64_t below = 0;  // in a nest: where the guard holds, a place is below the product of these ranges' extents; or 0
  bool sequence = false;  // in a nest: element after element, in order; else tree T
  int origin = -1;        // as a node's
  int guard = -1;         // in a nest: a Bool; elements where it is false are absent (their value changes nothing)
  std::array<int, 2> factor{-1, -1};  // in a nest: value is multiplied by it; a sum of products, in chains of fma
  // In a nest, of long rows (pass/split_rows.h). chunk: a range; only the 65,536 elements that it stands for are
  // reduced. of_chunks: values are what chunks gave, in order, and fold as those of one row.
  int chunk = -1;
  bool of_chunks = false;
  bool multiplies() const { return factor[0] >= 0; }
  std::array<int*, 5> nodes() { return {&value[0], &value[1], &guard, &factor[0], &factor[1]}; }
  std::array<int, 5> reads() const { return {value[0], value[1], guard, factor[0], factor[1]}; }
};

struct Operand {
  std::string name;
  DType storage;
  bool per_row = false;
  bool held = false;       // of a pointwise kernel: often the same for block after block
  bool broadcast = false;  // where rows lie across memory: an input with one value for all columns; per row, with one
                           // for all elements of a column, which lies beside the others
};

struct Scalar {
  std::string name;
  DType type;
};

struct Store {
  int operand;  // output, or scratch row
  int value;
  uint8_t part = 0;
  bool scratch = false;
};

struct Pass {
  std::vector<Node> nodes;  // arguments precede their users
  std::vector<Store> stores;
  std::vector<Reduction> reductions;
  std::vector<Carry> carries;
  bool elementwise = false;  // writes outputs with one value per element
};

struct Kernel {
  std::string name, source, text;
  KernelKind kind = KernelKind::Pointwise;
  DType dtype = DType::F32;
  std::vector<Operand> outputs, inputs;
  std::vector<Scalar> scalars;
  std::vector<DType> scratch;
  size_t local_scratch =
      0;  // the last of them: read by the passes just behind the one that writes them, before any fold
  std::vector<Pass> passes;
  std::vector<std::string> lines;  // of each origin: `12 "model.py"`, or nothing; a text with these has #line for them
  bool rounds_inside = false;      // to its dtype, before the result: float16 cannot borrow the kernel of float32
  bool across = true;              // its rows may lie across memory (reduces_columns)
  bool side_by_side = true;        // or are short (computes_across)
  bool fused = false;              // made of a graph: none of the table's, whose bytes are the core's
  bool borrowed = false;           // float16: the table has no functions for it, and float32's serve
  // Elements of every row, where that is known; else 0. Texts differ only by what divides it and whether it is short,
  // so that lengths share them.
  int64_t length = 0;
  bool whole(int64_t lanes) const { return length > 0 && length % lanes == 0; }
  // Of elements, where a graph's lie in rows: a bit for each input that is one value in every row. -1: no rows.
  int64_t row_values = -1;
};

// The DAG that the builder grows: equal nodes are one, constants are folded with their exact bits.
class Graph {
 public:
  int add(Node n);
  int constant(DType type, uint64_t bits);
  int real(DType type, double v);      // F32 or F64
  int integer(DType type, int64_t v);  // any integer type, or Bool
  int op(Op op, DType type, int a, int b = -1, int c = -1) { return add({op, type, {a, b, c}}); }
  int bin(Op o, int a, int b) { return op(o, type(a), a, b); }
  int compare(Op o, int a, int b) { return op(o, DType::Bool, a, b); }
  int select(int c, int a, int b) { return op(Op::Select, type(a), c, a, b); }
  bool implies(int guard, int condition) const;  // since it is among those that `guard` joins
  int reduce(Reduction r);

  DType type(int v) const { return nodes[v].type; }
  const Node& node(int v) const { return nodes[v]; }
  void name(int v, const std::string& name, bool own) {
    bool by_operand = nodes[v].leaf() && nodes[v].op != Op::Reduced;
    if (by_operand || (!own && !nodes[v].name.empty())) return;
    nodes[v].name = name;
    nodes[v].own = own;
  }

  std::vector<Node> nodes;
  std::vector<Reduction> reductions;
  std::vector<Carry> carries;
  int origin = -1;        // of what is added
  bool portable = false;  // half floats are taken apart: for printers that have no instructions for them

 private:
  struct Key {
    Op op;
    DType type;
    uint8_t part;
    std::array<int, 3> arg;
    uint64_t imm;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const;
  };
  std::unordered_map<Key, int, KeyHash> known_;
};

// A value of a conversion that always has one: floats saturate and NaN gives 0 in integers, integers wrap, Bool is
// != 0. Types of memory: half floats go through F32 and are U16 nodes, Bool is a U8 node.
int convert(Graph& g, int v, DType to);
int widen_half(Graph& g, int v);  // what WidenHalf and NarrowHalf do, in integers: where no instruction does it
int narrow_half(Graph& g, int v);
int from_storage(Graph& g, int v, DType storage);  // a loaded node as a value of the compute type
int to_storage(Graph& g, int v, DType storage);    // a value of any type as the node to store
DType storage_node_type(DType storage);            // type of the nodes above: U16, U8, a component, or itself

// Folds one operation over constants, or gives an equal simpler node; -1 if there is nothing to do.
int fold(Graph& g, const Node& n);

// Distributes a graph over passes. outputs[k]: nodes of output k (storage types; the second is an imaginary part).
void split_passes(const Graph& g, const std::vector<std::array<int, 2>>& outputs, Kernel& kernel);

const char* op_name(Op op);
const char* infix(Op op);  // C's sign of an operation on two values, or null
const char* combine_name(Combine c);
const char* helper_name(Helper h);
std::string dump(const Kernel& kernel);

// Raises (internal) where the kernel breaks the spec above.
void verify(const Kernel& kernel);

}  // namespace strata::lower
