// Recurrent networks, attention, transformers.
#include "harness.h"

void harness::sequences() {
  MODULE("nn.RNN(3, 4)", "f:5,2,3", nn::RNN(3, 4));
  MODULE("nn.RNN(3, 4, 2, nonlinearity='relu', bias=False, bidirectional=True)", "f:5,2,3 f:4,2,4",
         nn::RNN(3, 4, nn::RNNOptions{.num_layers = 2, .nonlinearity = "relu", .bias = false, .bidirectional = true}));
  MODULE("nn.GRU(3, 4, 2, dropout=0.4, batch_first=True)", "f:2,5,3",
         nn::GRU(3, 4, nn::GRUOptions{.num_layers = 2, .batch_first = true, .dropout = 0.4}));
  MODULE("nn.GRU(3, 4, bidirectional=True)", "f:5,3 f:2,4", nn::GRU(3, 4, nn::GRUOptions{.bidirectional = true}));
  MODULE("nn.LSTM(3, 4)", "f:5,2,3", nn::LSTM(3, 4));
  MODULE_CALL("nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)", "m(x[0], (x[1], x[2]))", "f:5,2,3 f:4,2,2 f:4,2,4",
              m(x[0], nn::LSTMState(x[1], x[2])),
              nn::LSTM(3, 4, nn::LSTMOptions{.num_layers = 2, .bidirectional = true, .proj_size = 2}));
  MODULE("nn.RNNCell(3, 4)", "f:2,3", nn::RNNCell(3, 4));
  MODULE("nn.RNNCell(3, 4, nonlinearity='relu')", "f:3 f:4", nn::RNNCell(3, 4, true, "relu"));
  MODULE("nn.GRUCell(3, 4, bias=False)", "f:2,3 f:2,4", nn::GRUCell(3, 4, false));
  MODULE("nn.LSTMCell(3, 4)", "f:3", nn::LSTMCell(3, 4));
  MODULE_CALL("nn.LSTMCell(3, 4)", "m(x[0], (x[1], x[2]))", "f:2,3 f:2,4 f:2,4", m(x[0], nn::LSTMState(x[1], x[2])),
              nn::LSTMCell(3, 4));

  using nn::AttentionOptions;
  MODULE_CALL("nn.MultiheadAttention(6, 2, dropout=0.2)", "m(x[0], x[0], x[0])", "f:4,2,6", m(x[0], x[0], x[0]),
              nn::MultiheadAttention(6, 2, nn::MultiheadAttentionOptions{.dropout = 0.2}));
  MODULE_CALL(
      "nn.MultiheadAttention(6, 3, batch_first=True, add_bias_kv=True, add_zero_attn=True)",
      "m(x[0], x[1], x[1], x[2], average_attn_weights=False)", "f:2,4,6 f:2,5,6 b:2,5",
      m(x[0], x[1], x[1], AttentionOptions{.key_padding_mask = x[2], .average_attn_weights = false}),
      nn::MultiheadAttention(
          6, 3, nn::MultiheadAttentionOptions{.add_bias_kv = true, .add_zero_attn = true, .batch_first = true}));
  MODULE_CALL("nn.MultiheadAttention(6, 2, bias=False, kdim=3, vdim=5)", "m(*x, need_weights=False)",
              "f:4,2,6 f:5,2,3 f:5,2,5", m(x[0], x[1], x[2], AttentionOptions{.need_weights = false}),
              nn::MultiheadAttention(6, 2, nn::MultiheadAttentionOptions{.bias = false, .kdim = 3, .vdim = 5}));
  MODULE_CALL("nn.MultiheadAttention(6, 2)",
              "m(*x, need_weights=False, attn_mask=nn.Transformer.generate_square_subsequent_mask(4), is_causal=True)",
              "f:4,6 f:4,6 f:4,6",
              m(x[0], x[1], x[2],
                AttentionOptions{.need_weights = false,
                                 .attn_mask = nn::TransformerImpl::generate_square_subsequent_mask(4),
                                 .is_causal = true}),
              nn::MultiheadAttention(6, 2));

  MODULE("nn.TransformerEncoderLayer(6, 2, 8)", "f:4,2,6",
         nn::TransformerEncoderLayer(6, 2, nn::TransformerLayerOptions{.dim_feedforward = 8}));
  MODULE_CALL(
      "nn.TransformerEncoderLayer(6, 2, 8, 0.3, nn.functional.gelu, norm_first=True, batch_first=True, bias=False)",
      "m(x[0], src_key_padding_mask=x[1])", "f:2,4,6 b:2,4", m(x[0], nn::EncoderMasks{.key_padding_mask = x[1]}),
      nn::TransformerEncoderLayer(
          6, 2,
          nn::TransformerLayerOptions{.dim_feedforward = 8,
                                      .dropout = 0.3,
                                      .activation = [](const Tensor& t) { return strata::gelu(t); },
                                      .batch_first = true,
                                      .norm_first = true,
                                      .bias = false}));
  MODULE("nn.TransformerDecoderLayer(6, 2, 8)", "f:4,2,6 f:3,2,6",
         nn::TransformerDecoderLayer(6, 2, nn::TransformerLayerOptions{.dim_feedforward = 8}));
  MODULE_CALL(
      "nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2, nn.LayerNorm(6))",
      "m(x[0], nn.Transformer.generate_square_subsequent_mask(4))", "f:4,2,6",
      m(x[0], nn::EncoderMasks{.mask = nn::TransformerImpl::generate_square_subsequent_mask(4)}),
      nn::TransformerEncoder(nn::TransformerEncoderLayer(6, 2, nn::TransformerLayerOptions{.dim_feedforward = 8}), 2,
                             nn::LayerNorm(6)));
  MODULE(
      "nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 2)", "f:4,2,6 f:3,2,6",
      nn::TransformerDecoder(nn::TransformerDecoderLayer(6, 2, nn::TransformerLayerOptions{.dim_feedforward = 8}), 2));
  MODULE("nn.Transformer(6, 2, 2, 1, 8)", "f:4,2,6 f:3,2,6", [] {
    nn::TransformerOptions options;
    options.d_model = 6;
    options.nhead = options.num_encoder_layers = 2;
    options.num_decoder_layers = 1;
    options.dim_feedforward = 8;
    return nn::Transformer(options);
  }());
}
