// Nest -> C: one function with flat parameters and the whole loop nest in it, one lane. The same text serves every
// dialect; kernels of one file share their helpers.
//
// Loops: the ranges that stores depend on, in the order of their numbers; a value stands at the outermost loop where it
// is known. A reduction is a loop of its own where its result is known: tree T keeps 1,024 positions of the chunk at
// hand and a stack of chunks that fold pairwise in order (Note [Tree T]); a maximum of floats keeps 16
// lanes, as the vector kernels do, so that -0 and +0 come out alike.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "lower/ir/nest.h"
#include "lower/print/dialect.h"

namespace strata::lower {

// What a printed function takes, in order. Sizes and strides are in elements, offsets in bytes.
struct NestParameter {
  // Word: which word of the status an entry point's is (print_entry.h).
  enum Kind : uint8_t { Memory, Offset, Extent, Stride, Scalar, Begin, End, Status, Word };
  Kind kind;
  int index;         // operand, range or scalar
  uint8_t part = 0;  // dim of a stride; 1: the imaginary part of a scalar
  DType type;        // of memory its elements' (a complex operand's component); I64 elsewhere, I32 for the status
  bool output;
  std::string name;
};
std::vector<NestParameter> parameters(const Nest& nest);

// Helper functions that printed kernels call, each once, those they need first.
class NestHelpers {
 public:
  explicit NestHelpers(const Dialect& dialect) : dialect_(dialect) {}
  void add(const std::string& what, DType type);  // "div", "tree_add"
  const std::string& text() const { return text_; }

 private:
  const Dialect& dialect_;
  std::set<std::string> done_;
  std::string text_;
};

// Where the dialect has groups, a kernel whose rows they can share (pass/grouped.h) is that of a group's item: it takes
// also the item's number, and the group's memory.
std::string print_nest(const Nest& nest, const Dialect& dialect, NestHelpers& helpers);

// `void call_<symbol>(const StrataNestArgs*)`: the same function with its arguments in arrays (lower/kernel_abi.h), for
// callers in C++. kNestArgs is the text of that struct.
extern const char* const kNestArgs;
std::string print_adapter(const Nest& nest);

// A whole file; with adapters only where `adapters`.
std::string print_nests(const std::vector<Nest>& nests, const Dialect& dialect, bool adapters = false);

}  // namespace strata::lower
