// Multi-head attention. Layout inside: (N * heads, length, head size).
#include "strata/nn/attention.h"

#include <cmath>

#include "strata/nn/init.h"

namespace strata::nn {

Tensor functional::additive_mask(const Tensor& mask, const char* name, DType dtype) {
  if (!mask.defined() || is_float(mask.dtype())) return mask;
  STRATA_CHECK_VALUE(mask.dtype() == DType::Bool, "only bool and floating types of ", name, " are supported, got ",
                     mask.dtype());
  return ops::masked_fill_(ops::zeros(mask.sizes(), dtype, mask.device()), mask, Scalar(-INFINITY));
}

MultiheadAttentionImpl::MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads, MultiheadAttentionOptions given)
    : embed_dim(embed_dim), num_heads(num_heads), options(given) {
  STRATA_CHECK_VALUE(embed_dim > 0 && num_heads > 0,
                     "embed_dim and num_heads must be greater than 0, got embed_dim=", embed_dim,
                     " and num_heads=", num_heads, " instead");
  STRATA_CHECK_VALUE(embed_dim % num_heads == 0, "embed_dim must be divisible by num_heads, got ", embed_dim, " and ",
                     num_heads);
  const int64_t e = embed_dim, k = options.kdim.value_or(e), v = options.vdim.value_or(e);
  const bool alike = k == e && v == e;
  const auto add = [&](const char* name, bool there, IntArrayRef sizes) {
    return register_parameter(name, there ? ops::empty(sizes, options.dtype) : Tensor());
  };
  in_proj_weight = add("in_proj_weight", alike, {3 * e, e});
  q_proj_weight = add("q_proj_weight", !alike, {e, e});
  k_proj_weight = add("k_proj_weight", !alike, {e, k});
  v_proj_weight = add("v_proj_weight", !alike, {e, v});
  in_proj_bias = add("in_proj_bias", options.bias, {3 * e});
  out_proj = register_module("out_proj", Linear(e, e, options.bias, options.dtype));
  bias_k = add("bias_k", options.add_bias_kv, {1, 1, e});
  bias_v = add("bias_v", options.add_bias_kv, {1, 1, e});
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (w.defined()) init::xavier_uniform_(w);
  if (options.bias) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  for (const Tensor& b : {bias_k, bias_v})
    if (b.defined()) init::xavier_normal_(b);
}

// Through one stacked weight with as few products as the inputs allow, or through three.
std::vector<Tensor> MultiheadAttentionImpl::project(const Tensor& q, const Tensor& k, const Tensor& v) const {
  const Tensor &w = in_proj_weight, &b = in_proj_bias;
  const Tensor none;
  if (!w.defined()) {
    STRATA_CHECK_VALUE(k.size(0) == v.size(0) && k.size(1) == v.size(1),
                       "key's sequence and batch dims do not match value's: ", k.sizes(), " and ", v.sizes());
    const std::vector<Tensor> parts = b.defined() ? ops::chunk(b, 3) : std::vector<Tensor>(3);
    return {ops::linear(q, q_proj_weight, parts[0]), ops::linear(k, k_proj_weight, parts[1]),
            ops::linear(v, v_proj_weight, parts[2])};
  }
  STRATA_CHECK_VALUE(k.sizes() == v.sizes(), "key shape ", k.sizes(), " does not match value shape ", v.sizes());
  if (k.is_same(v) && q.is_same(k)) return ops::chunk(ops::linear(q, w, b), 3, -1);
  const int64_t e = embed_dim;
  const std::vector<Tensor> weights = ops::split(w, IntArrayRef({e, 2 * e}));
  const std::vector<Tensor> biases = b.defined() ? ops::split(b, IntArrayRef({e, 2 * e})) : std::vector<Tensor>(2);
  std::vector<Tensor> out = {ops::linear(q, weights[0], biases[0])};
  if (k.is_same(v)) {
    for (const Tensor& part : ops::chunk(ops::linear(k, weights[1], biases[1]), 2, -1)) out.push_back(part);
    return out;
  }
  const std::vector<Tensor> halves = ops::chunk(weights[1], 2);
  const std::vector<Tensor> half_biases = b.defined() ? ops::chunk(biases[1], 2) : std::vector<Tensor>(2);
  out.push_back(ops::linear(k, halves[0], half_biases[0]));
  out.push_back(ops::linear(v, halves[1], half_biases[1]));
  return out;
}

std::pair<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                          const AttentionOptions& how) {
  const int64_t rank = query.dim();
  STRATA_CHECK_VALUE(rank == 2 || rank == 3, "query should be unbatched 2D or batched 3D tensor but received ", rank,
                     "-D query tensor");
  STRATA_CHECK_VALUE(key.dim() == rank && value.dim() == rank, "expected key and value of ", rank,
                     " dims like query, got ", key.dim(), " and ", value.dim());
  STRATA_CHECK_VALUE(query.size(-1) == embed_dim, "was expecting embedding dimension of ", embed_dim, ", but got ",
                     query.size(-1));
  STRATA_CHECK_VALUE(!how.key_padding_mask.defined() || how.key_padding_mask.dim() == rank - 1,
                     "expected a key_padding_mask of ", rank - 1, " dims");
  // One tensor given for several stays one, so that a single product serves them.
  const auto laid = [&](const Tensor& x) {
    return rank == 2 ? ops::unsqueeze(x, 1) : options.batch_first ? ops::transpose(x, 0, 1) : x;
  };
  const Tensor x = laid(query), y = key.is_same(query) ? x : laid(key);
  const Tensor z = value.is_same(query) ? x : value.is_same(key) ? y : laid(value);
  const int64_t target = x.size(0), batch = x.size(1), head = embed_dim / num_heads, rows = batch * num_heads;

  Tensor padding =
      how.key_padding_mask.defined() && rank == 2 ? ops::unsqueeze(how.key_padding_mask, 0) : how.key_padding_mask;
  padding = functional::additive_mask(padding, "key_padding_mask", x.dtype());
  STRATA_CHECK(!how.is_causal || how.attn_mask.defined(),
               "Need attn_mask if specifying the is_causal hint: generate_square_subsequent_mask() makes it");
  // The attention operator makes the causal mask itself.
  const bool causal = how.is_causal && !padding.defined() && !how.need_weights;
  Tensor mask = causal ? Tensor() : functional::additive_mask(how.attn_mask, "attn_mask", x.dtype());

  std::vector<Tensor> qkv = project(x, y, z);
  Tensor q = qkv[0], k = qkv[1], v = qkv[2];
  if (mask.defined()) {
    const int64_t many = y.size(0);
    const bool fits = mask.dim() == 2 ? mask.sizes() == IntArrayRef({target, many})
                                      : mask.sizes() == IntArrayRef({rows, target, many});
    STRATA_CHECK(fits, "The shape of the attn_mask is ", mask.sizes(), ", but should be (", target, ", ", many,
                 ") or (", rows, ", ", target, ", ", many, ").");
    if (mask.dim() == 2) mask = ops::unsqueeze(mask, 0);
  }
  int64_t extra = 0;  // positions appended to keys and values, which no mask covers
  if (bias_k.defined()) {
    k = ops::cat({k, ops::repeat(bias_k, {1, batch, 1})});
    v = ops::cat({v, ops::repeat(bias_v, {1, batch, 1})});
    ++extra;
  }
  const auto by_head = [&](const Tensor& t) { return ops::transpose(ops::reshape(t, {t.size(0), rows, head}), 0, 1); };
  q = by_head(q);
  k = by_head(k);
  v = by_head(v);
  if (options.add_zero_attn) {
    const Tensor zero = ops::zeros({rows, 1, head}, k.dtype(), k.device());
    k = ops::cat({k, zero}, 1);
    v = ops::cat({v, zero}, 1);
    ++extra;
  }
  const int64_t source = k.size(1);
  if (extra && mask.defined()) mask = ops::pad(mask, {0, extra});
  if (padding.defined()) {
    if (extra) padding = ops::pad(padding, {0, extra});
    STRATA_CHECK_VALUE(padding.sizes() == IntArrayRef({batch, source}), "Expected key_padding_mask of shape (", batch,
                       ", ", source - extra, "), but got (", padding.size(0), ", ", padding.size(1) - extra, ")");
    Tensor per_head = ops::expand(ops::reshape(padding, {batch, 1, 1, source}), {-1, num_heads, -1, -1});
    per_head = ops::reshape(per_head, {rows, 1, source});
    mask = mask.defined() ? mask + per_head : per_head;
  }
  const double dropout = is_training() ? options.dropout : 0;
  Tensor output, weights;
  if (how.need_weights) {
    Tensor scores = ops::bmm(ops::mul(q, std::sqrt(1.0 / double(head))), ops::transpose(k, -2, -1));
    if (mask.defined()) scores = scores + mask;
    weights = ops::softmax(scores, -1);
    if (dropout > 0) weights = ops::dropout(weights, dropout, true);
    output = ops::reshape(ops::transpose(ops::bmm(weights, v), 0, 1), {target, batch, embed_dim});
    weights = ops::reshape(weights, {batch, num_heads, target, source});
    if (how.average_attn_weights) weights = ops::mean(weights, IntArrayRef(1));
  } else {
    if (mask.defined())
      mask = mask.size(0) == 1 ? ops::reshape(mask, {1, 1, -1, source})
                               : ops::reshape(mask, {batch, num_heads, -1, source});
    const auto split = [&](const Tensor& t) { return ops::reshape(t, {batch, num_heads, -1, head}); };
    const Tensor each = ops::scaled_dot_product_attention(split(q), split(k), split(v), mask, dropout, causal);
    output = ops::reshape(ops::permute(each, {2, 0, 1, 3}), {target, batch, embed_dim});
  }
  output = ops::linear(output, out_proj->weight, out_proj->bias);
  if (rank == 2) return {ops::squeeze(output, 1), weights.defined() ? ops::squeeze(weights, 0) : weights};
  return {options.batch_first ? ops::transpose(output, 0, 1) : output, weights};
}

}  // namespace strata::nn
