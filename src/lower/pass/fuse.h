// Fusing: of two nests one, in which the consumer computes what it would have read from the producer's memory. Note
// [Fusing].
//
// Before: operands are linked by name. An input of the consumer that bears the name of an output of the producer is
// what the producer wrote; inputs of one name are one tensor, scalars of one name one number. Callers rename.
//
// After: each read of the producer is the value that it stores, as a value of its storage dtype, so that the rounding
// of the store stays; the indices of the read stand for the producer's ranges. Bits are those of two launches, and so
// is the status. Of a guarded read that is outside, the value is 0, the producer's own reads are guarded, too, and it
// sets no status. Each reduction of the producer binds ranges of its own. The consumer's ranges, loops and orders stay,
// and come first; operands are the consumer's, then those that only the producer has. What the producer would have
// written is not written.
//
// A carry of the producer (ir/carry.h) that repeats is one for each place; one along a loop goes along the consumer's.
//
// What can't be fused, why_not says: a scatter's result; what is handed along a dim, where the consumer does not read
// it in its order; a result whose status would be lost, because the producer checks indices or divisors and the
// consumer does not read every place.
#pragma once
#include <string>
#include <vector>

#include "lower/ir/nest.h"

namespace strata::lower {

struct Fused {
  Nest nest;
  // Per range of the nest, whose size it has: that range of the consumer, else (-1) that of the producer.
  std::vector<int> of_consumer, of_producer;
};

// The reason in words, or nothing where they can be fused.
std::string why_not(const Nest& consumer, const Nest& producer);

// Raises (internal) where why_not has a reason.
Fused fuse(const Nest& consumer, const Nest& producer, const std::string& name);

}  // namespace strata::lower
