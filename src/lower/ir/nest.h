// Nest: a kernel over an index space, before any schedule. Named ranges run over dims; operands are read and written at
// elements computed from them (an offset is a sum of index times Stride); a reduction binds the ranges that it reduces.
// There are no lanes, threads or passes here: a printer makes loops of it. Note [Index space] has the reasons.
//
// Spec, which verify() executes:
//   - arguments precede their users; every Range and Extent names a range, every Stride a dim of an operand;
//   - offsets are I64, guards and conditions Bool; a value of an operand has its storage's type;
//   - a reduction's value depends on each range that it binds; its result depends on none of them;
//   - the ranges that stores depend on are the loops around them: of any two stores, one has all ranges of the other;
//   - what carries along a loop has that as the innermost of the loops that its values depend on; what repeats has a
//     range of its own, no loop; a scan's `next` is of its states and constants alone;
//   - outputs are written, never read, but by contributions, whose output begins as the caller left it;
//   - a contribution runs over every loop; those to one element come in the order of the loops.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lower/ir/ir.h"

namespace strata::lower {

struct NestOperand {
  std::string name;
  DType storage;
  bool output;
  std::vector<int> dims;  // the range that runs over each dim; strides are parameters
  std::string label() const { return output ? name + "_out" : name; }  // an input may have an output's name
};

struct NestStore {
  // How a contribution changes the element; Put: the last one stays.
  enum Into : uint8_t { None, Put, Add, Mul, Max, Min };
  int operand, offset, value;
  uint8_t part = 0;
  Into into = None;
  int imaginary = -1;   // of a contribution: its other part
  int guard = -1;       // a Bool; where it is false the contribution is left out
  bool chains = false;  // of 1,024 contributions each, kept in the operands Nest::kTotal and Nest::kCount
};

// What a range runs over: a named dim, the plain group (component 0 outside of all others, 1 inside), or a dim of a
// group.
struct NestRange {
  std::string name;                                          // in the printed text
  enum Kind : uint8_t { Named, Plain, Group } kind = Named;  // numbers of kernel_abi.h
  std::string of = name;                                     // the dim's or group's name in the table
  uint8_t component = 0;
  bool ordered = false;  // contributions of several of its indices may meet in one element
  bool whole = false;    // a carry goes along it: nobody divides it
  int64_t known = 0;     // of a device's kernel: its size is a constant of the text; 0: an argument
  int64_t fixed = 0;     // in every text, since the description says so
};

struct Nest {
  std::string name, source, text;
  DType dtype;  // of the description, for the name; each value has its own
  std::vector<NestRange> ranges;
  std::vector<NestOperand> operands;  // outputs first
  std::vector<Scalar> scalars;
  std::vector<Node> nodes;
  std::vector<Reduction> reductions;
  std::vector<Carry> carries;
  std::vector<NestStore> stores;
  std::vector<uint64_t> depends;  // per node: the ranges, a bit each

  // Contributions in chains of 1,024 have two more outputs, which lie as the result does: what the chains before the
  // one at hand gave, and how many contributions there were.
  static constexpr const char *kTotal = "total", *kCount = "count";

  static constexpr const char* kTurns = "turns";  // begins the names of ranges of carries that repeat

  uint64_t runs_over(const NestStore& s) const;
  uint64_t loops() const;      // ranges that stores run over
  std::string symbol() const;  // "add_Tensor_f32"
};

// How many ranges a pointwise or row kernel has over its rows, and over elements.
struct BlockForm {
  int kept = 1, elements = 1;
};

// The kernel of `desc` for tensors of `dtype` as a nest. Raises Value for a text that makes no sense. `streams`: random
// words are computed from the scalars seed and offset, and are no operands.
Nest build_nest(const KernelDesc& desc, DType dtype, bool streams = false, BlockForm form = {});

// Fills `depends` from nodes and reductions.
void find_dependences(Nest& nest);

// Raises (internal) where the nest breaks the spec above.
void verify(const Nest& nest);

const char* into_name(NestStore::Into into);  // "sum"
std::string dump(const Nest& nest);

}  // namespace strata::lower
