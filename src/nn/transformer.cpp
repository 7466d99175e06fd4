// Transformers.
#include "strata/nn/transformer.h"

#include <cmath>

#include "strata/nn/init.h"

namespace strata::nn {

namespace {
constexpr int64_t most_layers = 1 << 16;

// A module of its own with the values of `from`, without a draw.
template <class Layer>
Layer copy_of(const Layer& from) {
  const init::Unset off;
  Layer made(from->d_model, from->nhead, from->options);
  made->load_state_dict(from->state_dict());
  return made;
}

template <class Layer>
std::vector<Layer> clones(const Layer& from, int64_t count, ModuleList& list) {
  STRATA_CHECK_VALUE(count <= most_layers, "num_layers: expected at most ", most_layers, ", got ", count);
  std::vector<Layer> made;
  for (int64_t k = 0; k < count; ++k) {
    made.push_back(copy_of(from));
    list->push_back(made.back());
  }
  return made;
}

// The caller's word where given, else whether `mask` is the causal one.
bool is_causal(const Tensor& mask, std::optional<bool> given, const Tensor& sequence, bool batch_first) {
  if (given) return *given;
  if (!mask.defined()) return false;
  const int64_t length = sequence.size(batch_first && sequence.dim() == 3 ? 1 : 0);
  if (mask.sizes() != IntArrayRef({length, length})) return false;
  const Tensor causal =
      TransformerImpl::generate_square_subsequent_mask(length, is_float(mask.dtype()) ? mask.dtype() : default_dtype());
  const Tensor like = is_float(mask.dtype()) ? causal : ops::ne(causal, Scalar(0));
  return item<bool>(ops::all(ops::eq(mask, ops::to(like, mask.device(), like.dtype()))));
}
}  // namespace

TransformerLayerBase::TransformerLayerBase(int64_t d_model, int64_t nhead, TransformerLayerOptions given,
                                           bool attends_memory)
    : d_model(d_model), nhead(nhead), options(std::move(given)) {
  const TransformerLayerOptions& o = options;
  const MultiheadAttentionOptions how{
      .dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first, .dtype = o.dtype};
  self_attn = register_module("self_attn", MultiheadAttention(d_model, nhead, how));
  if (attends_memory) multihead_attn = register_module("multihead_attn", MultiheadAttention(d_model, nhead, how));
  linear1 = register_module("linear1", Linear(d_model, o.dim_feedforward, o.bias, o.dtype));
  dropout = register_module("dropout", Dropout(o.dropout));
  linear2 = register_module("linear2", Linear(o.dim_feedforward, d_model, o.bias, o.dtype));
  const int blocks = attends_memory ? 3 : 2;
  for (int k = 1; k <= blocks; ++k)
    norms.push_back(register_module(str_cat("norm", k), LayerNorm(d_model, o.layer_norm_eps, true, o.bias, o.dtype)));
  for (int k = 1; k <= blocks; ++k) dropouts.push_back(register_module(str_cat("dropout", k), Dropout(o.dropout)));
}

Tensor TransformerLayerBase::attend(const MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
                                    const Tensor& mask, const Tensor& padding, bool causal) const {
  return attention->forward(x, memory, memory, {padding, false, mask, true, causal}).first;
}

Tensor TransformerLayerBase::feed_forward(const Tensor& x) const {
  return linear2(dropout(options.activation(linear1(x))));
}

Tensor TransformerLayerBase::residual(const Tensor& x, size_t k,
                                      const std::function<Tensor(const Tensor&)>& block) const {
  if (options.norm_first) return x + dropouts[k](block(norms[k](x)));
  return norms[k](x + dropouts[k](block(x)));
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const EncoderMasks& m) {
  const Tensor padding = functional::additive_mask(m.key_padding_mask, "src_key_padding_mask", src.dtype());
  const Tensor mask = functional::additive_mask(m.mask, "src_mask", src.dtype());
  const bool causal = m.is_causal.value_or(false);
  const Tensor x = residual(src, 0, [&](const Tensor& y) { return attend(self_attn, y, y, mask, padding, causal); });
  return residual(x, 1, [&](const Tensor& y) { return feed_forward(y); });
}

Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& m) {
  const bool causal = m.tgt_is_causal.value_or(false);
  Tensor x = residual(
      tgt, 0, [&](const Tensor& y) { return attend(self_attn, y, y, m.tgt_mask, m.tgt_key_padding_mask, causal); });
  x = residual(x, 1, [&](const Tensor& y) {
    return attend(multihead_attn, y, memory, m.memory_mask, m.memory_key_padding_mask, m.memory_is_causal);
  });
  return residual(x, 2, [&](const Tensor& y) { return feed_forward(y); });
}

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderLayer& layer, int64_t num_layers, LayerNorm norm)
    : norm_(std::move(norm)) {
  ModuleList list;
  layers_ = clones(layer, num_layers, list);
  register_module("layers", list);
  if (!norm_.is_empty()) register_module("norm", norm_);
}

Tensor TransformerEncoderImpl::forward(const Tensor& src, const EncoderMasks& given) {
  EncoderMasks m = given;
  m.key_padding_mask = functional::additive_mask(m.key_padding_mask, "src_key_padding_mask", src.dtype());
  m.mask = functional::additive_mask(m.mask, "mask", src.dtype());
  m.is_causal = is_causal(m.mask, m.is_causal, src, !layers_.empty() && layers_[0]->options.batch_first);
  Tensor x = src;
  for (const TransformerEncoderLayer& layer : layers_) x = layer->forward(x, m);
  return norm_.is_empty() ? x : norm_(x);
}

TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderLayer& layer, int64_t num_layers, LayerNorm norm)
    : norm_(std::move(norm)) {
  ModuleList list;
  layers_ = clones(layer, num_layers, list);
  register_module("layers", list);
  if (!norm_.is_empty()) register_module("norm", norm_);
}

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& given) {
  DecoderMasks m = given;
  m.tgt_is_causal = is_causal(m.tgt_mask, m.tgt_is_causal, tgt, !layers_.empty() && layers_[0]->options.batch_first);
  Tensor x = tgt;
  for (const TransformerDecoderLayer& layer : layers_) x = layer->forward(x, memory, m);
  return norm_.is_empty() ? x : norm_(x);
}

TransformerImpl::TransformerImpl(TransformerOptions given) : options(std::move(given)) {
  const TransformerOptions& o = options;
  const auto norm = [&] { return LayerNorm(o.d_model, o.layer_norm_eps, true, o.bias, o.dtype); };
  const TransformerEncoderLayer encoding(o.d_model, o.nhead, static_cast<const TransformerLayerOptions&>(o));
  encoder = register_module("encoder", TransformerEncoder(encoding, o.num_encoder_layers, norm()));
  const TransformerDecoderLayer decoding(o.d_model, o.nhead, static_cast<const TransformerLayerOptions&>(o));
  decoder = register_module("decoder", TransformerDecoder(decoding, o.num_decoder_layers, norm()));
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& src_masks,
                                const DecoderMasks& tgt_masks) {
  const int64_t batch = options.batch_first ? 0 : 1;
  STRATA_CHECK(src.dim() != 3 || src.size(batch) == tgt.size(batch), "the batch number of src and tgt must be equal");
  STRATA_CHECK(src.size(-1) == options.d_model && tgt.size(-1) == options.d_model,
               "the feature number of src and tgt must be equal to d_model");
  return decoder->forward(tgt, encoder->forward(src, src_masks), tgt_masks);
}

Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size, DType dtype) {
  return ops::triu(ops::full({size, size}, -INFINITY, dtype), 1);
}

}  // namespace strata::nn
