// A long pointwise text as several short ones, which go over some blocks of 16 elements after each other: where one
// chain of operations follows another, a processor sees the next elements' too late to work on them while these wait.
// What a later stage needs of an earlier one is kept in memory meanwhile, with its bits.
#pragma once
#include "lower/ir/ir.h"

namespace strata::lower {

struct Stage {
  Kernel kernel;              // a pointwise kernel of the same scalars
  std::vector<int> operands;  // of its outputs, then its inputs: which of the whole kernel's, or -1 - i for what is kept
};

struct Stages {
  std::vector<Stage> parts;  // one: the text is short, or no place in it has few values to keep
  std::vector<DType> kept;   // the types of what is kept
};

// rarely: by node of the kernel's pass, whether nothing but what is seldom computed needs it. All results are stored by
// the last stage, so that any may lie where an input does.
Stages in_stages(const Kernel& kernel, const std::vector<char>& rarely);

}  // namespace strata::lower
