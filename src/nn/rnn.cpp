// Recurrent networks.
#include "strata/nn/rnn.h"

#include <algorithm>
#include <cmath>

#include "strata/nn/init.h"

namespace strata::nn {

namespace {
// Each step takes the input's part of the gates already multiplied, so that a sequence does that for all steps at once.
Tensor plain_step(const Tensor& x, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh, bool relu) {
  const Tensor sum = x + ops::linear(h, w_hh, b_hh);
  return relu ? ops::relu(sum) : ops::tanh(sum);
}

// Reset, update and new gates: h moves from the new value towards the old one by the update gate.
Tensor gru_step(const Tensor& x, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  const std::vector<Tensor> of_x = ops::chunk(x, 3, -1), of_h = ops::chunk(ops::linear(h, w_hh, b_hh), 3, -1);
  const Tensor reset = ops::sigmoid(of_x[0] + of_h[0]);
  const Tensor update = ops::sigmoid(of_x[1] + of_h[1]);
  const Tensor fresh = ops::tanh(of_x[2] + reset * of_h[2]);
  return fresh + update * (h - fresh);
}

// Input, forget, cell and output gates; w_hr projects the new hidden state (arXiv:1402.1128).
LSTMState lstm_step(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& b_hh,
                    const Tensor& w_hr) {
  const std::vector<Tensor> gates = ops::chunk(x + ops::linear(h, w_hh, b_hh), 4, -1);
  const Tensor kept = ops::sigmoid(gates[1]) * c;
  const Tensor cell = kept + ops::sigmoid(gates[0]) * ops::tanh(gates[2]);
  const Tensor out = ops::sigmoid(gates[3]) * ops::tanh(cell);
  return {w_hr.defined() ? ops::linear(out, w_hr) : out, cell};
}

constexpr int64_t gates_of[] = {1, 1, 3, 4};
constexpr int64_t most_layers = 1 << 16;
}  // namespace

RNNBase::RNNBase(Mode mode, int64_t input_size, int64_t hidden_size, RNNOptions given)
    : input_size(input_size), hidden_size(hidden_size), options(std::move(given)), mode_(mode) {
  const RNNOptions& o = options;
  STRATA_CHECK_VALUE(o.dropout >= 0 && o.dropout <= 1, "dropout should be a number in range [0, 1], got ", o.dropout);
  STRATA_CHECK_VALUE(hidden_size > 0, "hidden_size must be greater than zero");
  STRATA_CHECK_VALUE(o.num_layers > 0, "num_layers must be greater than zero");
  STRATA_CHECK_VALUE(o.num_layers <= most_layers, "num_layers: expected at most ", most_layers, ", got ", o.num_layers);
  STRATA_CHECK_VALUE(o.proj_size >= 0, "proj_size should be a positive integer or zero to disable projections");
  STRATA_CHECK_VALUE(o.proj_size < hidden_size, "proj_size has to be smaller than hidden_size");
  STRATA_CHECK_VALUE(o.proj_size == 0 || mode == Mode::LSTM, "proj_size argument is only supported for LSTM");
  const int64_t rows = gates_of[int(mode)] * hidden_size, out_size = o.proj_size ? o.proj_size : hidden_size;
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (int direction = 0; direction < 1 + o.bidirectional; ++direction) {
      const std::string suffix = str_cat("_l", layer, direction ? "_reverse" : "");
      const int64_t in_size = layer == 0 ? input_size : out_size * (1 + o.bidirectional);
      Weights w;
      const auto add = [&](const char* name, IntArrayRef sizes) {
        w.push_back(register_parameter(name + suffix, ops::empty(sizes, o.dtype)));
      };
      add("weight_ih", {rows, in_size});
      add("weight_hh", {rows, out_size});
      if (o.bias) {
        add("bias_ih", {rows});
        add("bias_hh", {rows});
      }
      if (o.proj_size) add("weight_hr", {o.proj_size, hidden_size});
      weights_.push_back(std::move(w));
    }
  reset_parameters();
}

void RNNBase::reset_parameters() {
  const double bound = 1.0 / std::sqrt(double(hidden_size));
  for (const Weights& each : weights_)
    for (const Tensor& w : each) init::uniform_(w, -bound, bound);
}

std::vector<Tensor> RNNBase::walk(const Tensor& x, const Weights& w, std::vector<Tensor> states, bool backwards) const {
  const Tensor none, b_ih = options.bias ? w[2] : none, b_hh = options.bias ? w[3] : none;
  const Tensor w_hr = options.proj_size ? w.back() : none;
  std::vector<Tensor> steps = ops::unbind(ops::linear(x, w[0], b_ih), 0);
  if (backwards) std::reverse(steps.begin(), steps.end());
  std::vector<Tensor> outputs;
  for (const Tensor& gates : steps) {
    switch (mode_) {
      case Mode::LSTM:
        std::tie(states[0], states[1]) = lstm_step(gates, states[0], states[1], w[1], b_hh, w_hr);
        break;
      case Mode::GRU:
        states[0] = gru_step(gates, states[0], w[1], b_hh);
        break;
      default:
        states[0] = plain_step(gates, states[0], w[1], b_hh, mode_ == Mode::Relu);
    }
    outputs.push_back(states[0]);
  }
  if (backwards) std::reverse(outputs.begin(), outputs.end());
  states.insert(states.begin(), ops::stack(outputs));
  return states;
}

Tensor RNNBase::state(const Tensor& given, const Tensor& x, int64_t size, bool batched) const {
  const int64_t count = int64_t(weights_.size()), rows = x.size(1);
  if (!given.defined()) return ops::zeros({count, rows, size}, x.dtype(), x.device());
  STRATA_CHECK(given.dim() == (batched ? 3 : 2), "expected a hidden state of ", batched ? 3 : 2, " dims, got ",
               given.dim());
  const Tensor h = batched ? given : ops::unsqueeze(given, 1);
  STRATA_CHECK(h.sizes() == IntArrayRef({count, rows, size}), "Expected hidden size (", count, ", ", rows, ", ", size,
               "), got ", h.sizes());
  return h;
}

std::vector<Tensor> RNNBase::run(const Tensor& input, const std::vector<Tensor>& initial) const {
  const RNNOptions& o = options;
  STRATA_CHECK_VALUE(input.dim() == 2 || input.dim() == 3, "Expected input to be 2D or 3D, got ", input.dim(),
                     "D instead");
  STRATA_CHECK(input.size(-1) == input_size, "input.size(-1) must be equal to input_size. Expected ", input_size,
               ", got ", input.size(-1));
  const bool batched = input.dim() == 3;
  Tensor x = !batched ? ops::unsqueeze(input, 1) : o.batch_first ? ops::transpose(input, 0, 1) : input;
  std::vector<Tensor> states;
  for (size_t k = 0; k < initial.size(); ++k)
    states.push_back(state(initial[k], x, k == 0 && o.proj_size ? o.proj_size : hidden_size, batched));
  std::vector<std::vector<Tensor>> finals(states.size());
  const int64_t directions = 1 + o.bidirectional;
  for (int64_t layer = 0; layer < o.num_layers; ++layer) {
    std::vector<Tensor> sides;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t i = layer * directions + direction;
      std::vector<Tensor> own;
      for (const Tensor& s : states) own.push_back(ops::select(s, 0, i));
      const std::vector<Tensor> found = walk(x, weights_[size_t(i)], std::move(own), direction == 1);
      sides.push_back(found[0]);
      for (size_t k = 0; k < finals.size(); ++k) finals[k].push_back(found[k + 1]);
    }
    x = directions == 2 ? ops::cat(sides, -1) : sides[0];
    if (o.dropout > 0 && layer < o.num_layers - 1) x = ops::dropout(x, o.dropout, is_training());
  }
  std::vector<Tensor> results = {x};
  for (const std::vector<Tensor>& each : finals) results.push_back(ops::stack(each));
  if (!batched)
    for (Tensor& r : results) r = ops::squeeze(r, 1);
  else if (o.batch_first)
    results[0] = ops::transpose(results[0], 0, 1);
  return results;
}

namespace {
bool is_relu(const std::string& nonlinearity) {
  STRATA_CHECK_VALUE(nonlinearity == "tanh" || nonlinearity == "relu", "Unknown nonlinearity '", nonlinearity,
                     "'. Select from 'tanh' or 'relu'.");
  return nonlinearity == "relu";
}
}  // namespace

RNNImpl::RNNImpl(int64_t input_size, int64_t hidden_size, RNNOptions o)
    : RNNBase(is_relu(o.nonlinearity) ? Mode::Relu : Mode::Tanh, input_size, hidden_size, o) {}
GRUImpl::GRUImpl(int64_t input_size, int64_t hidden_size, GRUOptions o)
    : RNNBase(Mode::GRU, input_size, hidden_size, std::move(o)) {}
LSTMImpl::LSTMImpl(int64_t input_size, int64_t hidden_size, LSTMOptions o)
    : RNNBase(Mode::LSTM, input_size, hidden_size, std::move(o)) {}

std::pair<Tensor, Tensor> RNNImpl::forward(const Tensor& input, const Tensor& hx) {
  const std::vector<Tensor> r = run(input, {hx});
  return {r[0], r[1]};
}
std::pair<Tensor, Tensor> GRUImpl::forward(const Tensor& input, const Tensor& hx) {
  const std::vector<Tensor> r = run(input, {hx});
  return {r[0], r[1]};
}
std::pair<Tensor, LSTMState> LSTMImpl::forward(const Tensor& input, const LSTMState& hx) {
  const std::vector<Tensor> r = run(input, {hx.first, hx.second});
  return {r[0], {r[1], r[2]}};
}

// ---- cells

RNNCellBase::RNNCellBase(int64_t input_size, int64_t hidden_size, bool bias, int64_t chunks, DType dtype)
    : input_size(input_size), hidden_size(hidden_size) {
  const int64_t rows = chunks * hidden_size;
  weight_ih = register_parameter("weight_ih", ops::empty({rows, input_size}, dtype));
  weight_hh = register_parameter("weight_hh", ops::empty({rows, hidden_size}, dtype));
  bias_ih = register_parameter("bias_ih", bias ? ops::empty({rows}, dtype) : Tensor());
  bias_hh = register_parameter("bias_hh", bias ? ops::empty({rows}, dtype) : Tensor());
  reset_parameters();
}

void RNNCellBase::reset_parameters() {
  const double bound = hidden_size > 0 ? 1.0 / std::sqrt(double(hidden_size)) : 0;
  for (const Tensor& w : {weight_ih, weight_hh, bias_ih, bias_hh})
    if (w.defined()) init::uniform_(w, -bound, bound);
}

Tensor RNNCellBase::prepare(const Tensor& input, std::vector<Tensor>& states) const {
  STRATA_CHECK_VALUE(input.dim() == 1 || input.dim() == 2, "Expected input to be 1D or 2D, got ", input.dim(),
                     "D instead");
  const Tensor x = input.dim() == 1 ? ops::unsqueeze(input, 0) : input;
  STRATA_CHECK(x.size(1) == input_size, "input has inconsistent input_size: got ", x.size(1), " expected ", input_size);
  for (Tensor& s : states) {
    STRATA_CHECK_VALUE(!s.defined() || s.dim() == input.dim(), "Expected hidden to be ", input.dim(),
                       "D like its input, got ", s.defined() ? s.dim() : 0, "D instead");
    if (!s.defined())
      s = ops::zeros({x.size(0), hidden_size}, x.dtype(), x.device());
    else if (input.dim() == 1)
      s = ops::unsqueeze(s, 0);
  }
  return ops::linear(x, weight_ih, bias_ih);
}

namespace {
Tensor like_input(const Tensor& result, const Tensor& input) {
  return input.dim() == 1 ? ops::squeeze(result, 0) : result;
}
}  // namespace

RNNCellImpl::RNNCellImpl(int64_t input_size, int64_t hidden_size, bool bias, std::string word, DType dtype)
    : RNNCellBase(input_size, hidden_size, bias, 1, dtype), nonlinearity(std::move(word)) {
  is_relu(nonlinearity);
}
Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hx) {
  std::vector<Tensor> states = {hx};
  const Tensor gates = prepare(input, states);
  return like_input(plain_step(gates, states[0], weight_hh, bias_hh, is_relu(nonlinearity)), input);
}
Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hx) {
  std::vector<Tensor> states = {hx};
  const Tensor gates = prepare(input, states);
  return like_input(gru_step(gates, states[0], weight_hh, bias_hh), input);
}
LSTMState LSTMCellImpl::forward(const Tensor& input, const LSTMState& hx) {
  std::vector<Tensor> states = {hx.first, hx.second};
  const Tensor gates = prepare(input, states);
  const auto [h, c] = lstm_step(gates, states[0], states[1], weight_hh, bias_hh, {});
  return {like_input(h, input), like_input(c, input)};
}

}  // namespace strata::nn
