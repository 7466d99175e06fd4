// Transformer layers, stacks and the whole model: Vaswani et al., arXiv:1706.03762. Sequences are (length, N, size), or
// (N, length, size) where batch_first. Masks are as in MultiheadAttention.
#pragma once
#include <functional>

#include "strata/nn/attention.h"
#include "strata/nn/container.h"
#include "strata/nn/dropout.h"
#include "strata/nn/norm.h"

namespace strata::nn {

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::function<Tensor(const Tensor&)> activation = [](const Tensor& x) { return ops::relu(x); };
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
  DType dtype = default_dtype();
};

struct EncoderMasks {
  Tensor mask = {}, key_padding_mask = {};
  std::optional<bool> is_causal;  // none: found out from the mask; a layer alone takes it as false
};
struct DecoderMasks {
  Tensor tgt_mask = {}, memory_mask = {}, tgt_key_padding_mask = {}, memory_key_padding_mask = {};
  std::optional<bool> tgt_is_causal;
  bool memory_is_causal = false;
};

// What both kinds of layer share: self-attention, feed-forward, and where the norms stand.
class TransformerLayerBase : public Module {
 public:
  const int64_t d_model, nhead;
  const TransformerLayerOptions options;

 protected:
  TransformerLayerBase(int64_t d_model, int64_t nhead, TransformerLayerOptions options, bool attends_memory);
  Tensor attend(const MultiheadAttention& attention, const Tensor& x, const Tensor& memory, const Tensor& mask,
                const Tensor& padding, bool is_causal) const;
  Tensor feed_forward(const Tensor& x) const;
  // Block number k with its residual, norm and dropout.
  Tensor residual(const Tensor& x, size_t k, const std::function<Tensor(const Tensor&)>& block) const;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr};
  std::vector<LayerNorm> norms;
  std::vector<Dropout> dropouts;
};

class TransformerEncoderLayerImpl : public TransformerLayerBase {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead, TransformerLayerOptions options = {})
      : TransformerLayerBase(d_model, nhead, std::move(options), false) {}
  Tensor forward(const Tensor& src) override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const EncoderMasks& masks);
};
STRATA_MODULE(TransformerEncoderLayer);

class TransformerDecoderLayerImpl : public TransformerLayerBase {
 public:
  using Module::forward;
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead, TransformerLayerOptions options = {})
      : TransformerLayerBase(d_model, nhead, std::move(options), true) {}
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
};
STRATA_MODULE(TransformerDecoderLayer);

// num_layers copies of a layer in a row, then the norm where there is one.
class TransformerEncoderImpl : public Module {
 public:
  TransformerEncoderImpl(const TransformerEncoderLayer& layer, int64_t num_layers, LayerNorm norm = nullptr);
  Tensor forward(const Tensor& src) override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const EncoderMasks& masks);

 private:
  std::vector<TransformerEncoderLayer> layers_;
  LayerNorm norm_;
};
STRATA_MODULE(TransformerEncoder);

class TransformerDecoderImpl : public Module {
 public:
  using Module::forward;
  TransformerDecoderImpl(const TransformerDecoderLayer& layer, int64_t num_layers, LayerNorm norm = nullptr);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});

 private:
  std::vector<TransformerDecoderLayer> layers_;
  LayerNorm norm_;
};
STRATA_MODULE(TransformerDecoder);

struct TransformerOptions : TransformerLayerOptions {
  int64_t d_model = 512, nhead = 8, num_encoder_layers = 6, num_decoder_layers = 6;
};

// src through the encoder, tgt and that through the decoder; the result has tgt's shape.
class TransformerImpl : public Module {
 public:
  using Module::forward;
  explicit TransformerImpl(TransformerOptions options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& src_masks = {},
                 const DecoderMasks& tgt_masks = {});
  // (size, size): -inf above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size, DType dtype = default_dtype());
  const TransformerOptions options;
  TransformerEncoder encoder{nullptr};
  TransformerDecoder decoder{nullptr};
};
STRATA_MODULE(Transformer);

}  // namespace strata::nn
