// Long rows in two launches: what each chunk of 65,536 elements gives, by groups of items, and the fold of a row's
// chunks. The order is that of tree T, whose chunks fold pairwise.
#pragma once
#include <optional>

#include "lower/ir/nest.h"

namespace strata::lower {

constexpr int64_t kChunk = 65536;

struct SplitRows {
  Nest parts;  // outputs: by row and chunk, in the order of `fold`'s last inputs. Its last range counts chunks
  Nest fold;   // the operands of the kernel, then those of `parts`. Its last range counts chunks
};

// Of a kernel whose stores are one a row and whose reductions need none of each other; nothing of others.
std::optional<SplitRows> split_rows(const Nest& nest);

}  // namespace strata::lower
