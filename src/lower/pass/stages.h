// A long pointwise text as several short ones, which go over some blocks of 16 elements after each other: where one
// chain of operations follows another, a processor sees the next elements' too late to work on them while these wait.
// What a later stage needs of an earlier one is kept in memory meanwhile, with its bits. Note [Stages].
#pragma once
#include "lower/ir/ir.h"

namespace strata::lower {

struct Stage {
  Kernel kernel;  // a pointwise kernel of the same scalars
  std::vector<int>
      operands;  // of its outputs, then its inputs: which of the whole kernel's, or -1 - i for what is kept
};

struct Stages {
  std::vector<Stage> parts;  // one: the text is short, or no place in it has few values to keep
  std::vector<DType> kept;   // the types of what is kept
};

// A pass as several, of which the last one has its effects; what the others keep are scratch rows, numbered from the
// end of `kept`, which gets their types. rarely: by node, whether nothing but what is seldom computed needs it.
std::vector<Pass> cut_pass(const Pass& pass, const std::vector<char>& rarely, std::vector<DType>& kept);

// The same of a pointwise kernel. All results are stored by the last stage, so that any may lie where an input does.
Stages in_stages(const Kernel& kernel, const std::vector<char>& rarely);

}  // namespace strata::lower
