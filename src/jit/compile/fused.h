// Several launches as one kernel: their expressions in one SSA graph, with every rounding where it was. A value that
// one launch writes and a later one reads at the same place is handed on as what the memory would have held.
//
// All launches of a kernel run over one space: a shape, and the dims of it that are reduced, if any. A launch runs over
// all of it, or over its rows (a value for each index of the dims that are kept). Bits are those of the launches one by
// one; so is what remains in memory. With LaunchList::fast they are not where values of half types are handed on
// unrounded. Launches whose results jump (Piece::jumps) read what the memory would have held then, too: a maximum that
// was rounded would else not be found among values that were not.
#pragma once
#include <optional>

#include "jit/compile/elsewhere.h"
#include "jit/compile/launches.h"
#include "lower/ir/ir.h"
#include "lower/print/print_c.h"

namespace strata::jit {

// An operand of the kernel: a place in memory with a stride for each dim of the space, 0 along dims that it lacks. Or,
// of no block, what a launch makes where the kernel's loops ask for it: the words of a draw, elements of a space
// kernel.
struct FusedOperand {
  Operand memory;
  DimVec strides;
  bool per_row = false;
  const Launch* made_by = nullptr;

  bool same_place(const FusedOperand& o) const {
    return memory.block == o.memory.block && memory.offset == o.memory.offset && memory.dtype == o.memory.dtype &&
           strides == o.strides;
  }
};

// Whether two operands over a space are parts of a block that share no element, as what cat joins.
bool apart(const FusedOperand& a, const FusedOperand& b, const DimVec& shape);

struct FusedParam {
  Scalar value;
  DType type;
  // Of a draw on a device: the seed, or where its words begin, as a run has them.
  const Launch* drawn_by = nullptr;
  bool seed = false;
};

struct Fused {
  lower::Kernel kernel{.fused = true};
  DimVec shape, reduced;  // sizes; numbers of dims
  std::vector<FusedOperand> outs, ins;
  std::vector<FusedParam> params;
  std::array<int, 2> dropped{};           // roundings to bfloat16 and to float16 that LaunchList::fast left out
  std::optional<DeviceKernel> elsewhere;  // where the launches are a device's; the kernel has no passes then
};

// The kernel of these launches, in order, or the reason why there is none. `stores`: whether a block's last value is
// needed afterwards.
std::optional<Fused> fuse(const LaunchList& list, const std::vector<int>& launches, const std::vector<char>& stores,
                          std::string& why_not);
// Whether there is one.
bool can_fuse(const LaunchList& list, const std::vector<int>& launches, const std::vector<char>& stores,
              std::string& why_not);

}  // namespace strata::jit
