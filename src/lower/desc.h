// KernelDesc: what one generated kernel computes, as the operator table states it. The table's own are generated C++
// data (table_kernels.cpp, from ops/*.yaml); a user's expression makes one at run time.
#pragma once
#include <cstdint>

namespace strata::lower {

// Space: over named dims, operands read at index expressions (lower/pass/space_nest.h).
// How the rows of a Rows kernel may lie: along memory alone; across it, long ones, so that there is no form for short
// rows side by side; or both.
enum class RowsLie : uint8_t { Anywhere, Along, Across };

enum class KernelKind : uint8_t { Pointwise, Rows, Space };

struct KernelDesc {
  const char* name;    // "add_Tensor"; also the C function's stem
  const char* family;  // the YAML file's stem: kernels of a family are printed into one file
  KernelKind kind;
  const char* inputs;   // names of tensor operands, space separated; "mean:row" marks one value per row, "weight:held"
                        // what is often the same for block after block (a second loop reads it once), "mean:shared" one
                        // row for all; of a Space kernel with their dims: "self[p..,n] index[p..,i]:int64"
  const char* scalars;  // names of scalar operands, space separated
  const char* outputs;  // "result" or several; "values:row indices:row:int64": per-row outputs, fixed dtypes
                        // (":bool", ":int64", ":real" = component type of a complex compute type, ":truth" = bool, but
                        // uint8 for uint8; default: input dtype)
  const char*
      text;  // the expression: lines `name = expression`, the last ones assign the outputs (or one bare expression)
  uint32_t dtypes;        // bit per DType number for which it is printed
  const char* source;     // "ops/pointwise.yaml: add.Tensor", for comments in the printed text
  const char* over = "";  // of a Space kernel: the dims that its reductions run over, the last fastest
  bool sequence = false;  // element after element in that order; else tree T
  int rank = 0;           // the only number of dims that its groups have; 0: any
  bool by_hand = false;   // C++ runs it on the CPU: no kernel of it is linked
  RowsLie lie = RowsLie::Anywhere;
  bool hosted = false;  // C++ runs it on the CPU, but where it is part of a kernel
};

// The table's own, printed by gen/.
extern const KernelDesc table_kernels[];
extern const int64_t table_kernel_count;

}  // namespace strata::lower
