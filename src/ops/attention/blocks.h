// Attention in blocks of 64 queries by 64 keys, forward and backward, for any strides and float dtypes.
//
// Computed in float32, or float64 for float64. Per query the key blocks come in order; scores of a block are chains of
// fma over the width, as everywhere. The gradient by a query adds key blocks in order, those by keys and values add
// heads, then query blocks in order. So threads and what runs when leave the bits alone.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

constexpr int64_t kAttentionBlock = 64;

// query (batch, heads, L, E), key (batch, kv_heads, S, E), value (batch, kv_heads, S, Ev); heads a multiple of
// kv_heads. `mask` undefined or (batch, heads, L, S) with any strides: bool keeps what is true, floats are added.
struct AttentionCall {
  Tensor query, key, value, mask;
  bool causal = false;
  double scale = 1;
};

// out (batch, heads, L, Ev) of query's dtype with contiguous rows; logsumexp (batch, heads, L), contiguous, of the
// compute dtype.
void attention_forward(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp);

// The gradients have the compute dtype and contiguous rows, and are zeros at first; undefined ones are not wanted,
// key's and value's come together. delta: sum over the width of out times grad, (batch, heads, L), contiguous; zeros
// for float16 and bfloat16, where it is computed anew, because out was rounded.
void attention_backward_blocks(const AttentionCall& call, const Tensor& grad, const Tensor& logsumexp,
                               const Tensor& delta, const Tensor& grad_query, const Tensor& grad_key,
                               const Tensor& grad_value);

}  // namespace strata::eager
