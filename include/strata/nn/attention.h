// Multi-head attention: Vaswani et al., arXiv:1706.03762.
#pragma once
#include "strata/nn/linear.h"

namespace strata::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true, add_bias_kv = false, add_zero_attn = false;
  std::optional<int64_t> kdim, vdim;  // sizes of key and value where they differ: their weights are separate then
  bool batch_first = false;
  DType dtype = default_dtype();
};

// Masks: bool with true to leave out, or numbers to add. key_padding_mask (N, S); attn_mask (L, S) or (N * heads, L,
// S).
struct AttentionOptions {
  Tensor key_padding_mask = {};
  bool need_weights = true;
  Tensor attn_mask = {};
  bool average_attn_weights = true;
  bool is_causal = false;  // a hint that attn_mask is the causal one
};

// Inputs (L, N, E), or (N, L, E) where batch_first, or (L, E).
class MultiheadAttentionImpl : public Module {
 public:
  using Module::forward;
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads, MultiheadAttentionOptions options = {});
  // Output of query's shape, and the weights (undefined unless need_weights).
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& how = {});
  const int64_t embed_dim, num_heads;
  const MultiheadAttentionOptions options;
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v;
  Linear out_proj{nullptr};

 private:
  std::vector<Tensor> project(const Tensor& q, const Tensor& k, const Tensor& v) const;
};
STRATA_MODULE(MultiheadAttention);

namespace functional {
// A mask as numbers to add to scores: a bool one becomes -inf where true.
Tensor additive_mask(const Tensor& mask, const char* name, DType dtype);
}  // namespace functional

}  // namespace strata::nn
