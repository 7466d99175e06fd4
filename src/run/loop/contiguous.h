// Pointwise kernels over elements that follow each other in memory.
#pragma once
#include <cstdint>

#include "lower/kernel_abi.h"

namespace strata::eager {

constexpr int kMaxOperands = 12;
constexpr int64_t kBlock = 16;              // elements in a block of a pointwise kernel
constexpr int64_t kPointwiseGrain = 32768;  // elements that are worth a thread

constexpr int64_t kTabled = 1 << 19;  // elements of which those of two bytes are worth a table of all their values

// Bytes of a result up to which it stays in the last level of cache, where another operator is likely to read it next
// or not; larger ones are written past the caches.
int64_t cached_bytes(bool read_next);

// Bytes that do not overlap, written past the caches.
void copy_streamed(char* to, const char* from, int64_t bytes);

// n elements of operands that are all contiguous: outputs first; `size` holds bytes per element. `read_next`: another
// operator is likely to read the results soon. Returns the status.
int32_t run_contiguous(StrataPointwiseFn fn, char* const* ptr, const int64_t* size, int outputs, int inputs,
                       const void* params, int64_t n, bool read_next = true);

// The same on this thread, of `count` operands, where `step` is 0 for an input that is a block for all elements, and
// else size * kBlock. Whole blocks in place, since kernels take whole blocks only: the last one begins among the
// elements of the one before, where these may be computed `again`.
void run_span(StrataPointwiseFn fn, char* const* ptr, const int64_t* size, const int64_t* step, int outputs, int count,
              const void* params, int64_t n, int64_t flags, bool again, int32_t* status);

}  // namespace strata::eager
