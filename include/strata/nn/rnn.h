// Recurrent networks and their cells: RNN, LSTM (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al.,
// 2000), GRU (Cho et al., arXiv:1406.1078, in the form whose reset gate acts after the product).
//
// Sequences are (length, N, size), or (N, length, size) where batch_first, or (length, size); states are
// (layers * directions, N, size). States that are not given are zeros.
#pragma once
#include <string>

#include "strata/nn/module.h"

// Results here are no single tensor: forward() stands for the one of Module, which raises.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"

namespace strata::nn {

struct RNNOptions {
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  // or "relu"; of RNN alone
  bool bias = true, batch_first = false;
  double dropout = 0;  // after all layers but the last
  bool bidirectional = false;
  int64_t proj_size = 0;  // the hidden state is projected to it; of LSTM alone
  DType dtype = default_dtype();
};
using LSTMOptions = RNNOptions;
using GRUOptions = RNNOptions;
using LSTMState = std::pair<Tensor, Tensor>;  // h and c

// Weights of all layers and directions, with Python's names, and the walk over them.
class RNNBase : public Module {
 public:
  void reset_parameters();
  const int64_t input_size, hidden_size;
  const RNNOptions options;

 protected:
  enum class Mode { Tanh, Relu, GRU, LSTM };
  RNNBase(Mode mode, int64_t input_size, int64_t hidden_size, RNNOptions options);
  // The last layer's outputs, then each final state.
  std::vector<Tensor> run(const Tensor& input, const std::vector<Tensor>& states) const;

 private:
  using Weights = std::vector<Tensor>;
  std::vector<Tensor> walk(const Tensor& x, const Weights& weights, std::vector<Tensor> states, bool backwards) const;
  Tensor state(const Tensor& given, const Tensor& x, int64_t size, bool batched) const;
  const Mode mode_;
  std::vector<Weights> weights_;  // of each layer and direction
};

// Layers of h' = tanh(or relu)(weight_ih x + bias_ih + weight_hh h + bias_hh).
class RNNImpl : public RNNBase {
 public:
  RNNImpl(int64_t input_size, int64_t hidden_size, RNNOptions options = {});
  // Outputs of the last layer and the final h of every layer.
  std::pair<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx);
  std::pair<Tensor, Tensor> forward(const Tensor& input, std::nullptr_t = nullptr) { return forward(input, Tensor()); }
};
STRATA_MODULE(RNN);

class GRUImpl : public RNNBase {
 public:
  GRUImpl(int64_t input_size, int64_t hidden_size, GRUOptions options = {});
  std::pair<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx);
  std::pair<Tensor, Tensor> forward(const Tensor& input, std::nullptr_t = nullptr) { return forward(input, Tensor()); }
};
STRATA_MODULE(GRU);

class LSTMImpl : public RNNBase {
 public:
  LSTMImpl(int64_t input_size, int64_t hidden_size, LSTMOptions options = {});
  // Outputs of the last layer and the final h and c of every layer.
  std::pair<Tensor, LSTMState> forward(const Tensor& input, const LSTMState& hx);
  std::pair<Tensor, LSTMState> forward(const Tensor& input, std::nullptr_t = nullptr) {
    return forward(input, LSTMState());
  }
};
STRATA_MODULE(LSTM);

// Weights of one step, for x (N, input) or (input).
class RNNCellBase : public Module {
 public:
  void reset_parameters();
  const int64_t input_size, hidden_size;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RNNCellBase(int64_t input_size, int64_t hidden_size, bool bias, int64_t chunks, DType dtype);
  // The input's gates and the states, all with N.
  Tensor prepare(const Tensor& input, std::vector<Tensor>& states) const;
};

class RNNCellImpl : public RNNCellBase {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size, bool bias = true, std::string nonlinearity = "tanh",
              DType dtype = default_dtype());
  Tensor forward(const Tensor& input) override { return forward(input, Tensor()); }
  Tensor forward(const Tensor& input, const Tensor& hx);
  const std::string nonlinearity;
};
STRATA_MODULE(RNNCell);

class GRUCellImpl : public RNNCellBase {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size, bool bias = true, DType dtype = default_dtype())
      : RNNCellBase(input_size, hidden_size, bias, 3, dtype) {}
  Tensor forward(const Tensor& input) override { return forward(input, Tensor()); }
  Tensor forward(const Tensor& input, const Tensor& hx);
};
STRATA_MODULE(GRUCell);

class LSTMCellImpl : public RNNCellBase {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size, bool bias = true, DType dtype = default_dtype())
      : RNNCellBase(input_size, hidden_size, bias, 4, dtype) {}
  LSTMState forward(const Tensor& input, const LSTMState& hx);
  LSTMState forward(const Tensor& input, std::nullptr_t = nullptr) { return forward(input, LSTMState()); }
};
STRATA_MODULE(LSTMCell);

}  // namespace strata::nn

#pragma GCC diagnostic pop
