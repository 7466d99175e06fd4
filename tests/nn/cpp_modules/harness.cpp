#include "harness.h"

#include <cstdio>
#include <cstring>
#include <sstream>

namespace harness {

namespace {
uint32_t crc32(const uint8_t* bytes, size_t count) {
  uint32_t crc = ~0u;
  for (size_t k = 0; k < count; ++k) {
    crc ^= bytes[k];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

Tensor drawn_one(const std::string& word) {
  const size_t colon = word.find(':');
  const std::string kind = word.substr(0, colon);
  std::vector<int64_t> sizes;
  std::stringstream text(word.substr(colon + 1));
  for (std::string n; std::getline(text, n, ',');) sizes.push_back(std::stoll(n));
  if (kind[0] == 'i') return strata::randint(std::stoll(kind.substr(1)), sizes);
  if (kind == "s") return strata::randint(2, sizes).to(strata::DType::F32) * 2 - 1;
  if (kind == "b") return strata::rand(sizes) > 0.7;
  if (kind == "n") return strata::randn(sizes);
  if (kind == "p") return strata::rand(sizes);
  if (kind == "r") return strata::rand(sizes).requires_grad_();
  if (kind == "l") return strata::randn(sizes).log_softmax(-1).detach().requires_grad_();
  return strata::randn(sizes).requires_grad_();
}
}  // namespace

void put(const std::string& name, const Tensor& t) {
  const Tensor plain = t.detach().contiguous();
  std::string sizes;
  for (int64_t n : plain.sizes()) sizes += (sizes.empty() ? "" : ",") + std::to_string(n);
  const size_t bytes = size_t(plain.numel() * strata::itemsize(plain.dtype()));
  std::printf("%s (%s) %08x\n", name.c_str(), sizes.c_str(),
              crc32(static_cast<const uint8_t*>(plain.data_ptr()), bytes));
}

Tensors drawn(const std::string& text) {
  Tensors out;
  std::stringstream words(text);
  for (std::string word; words >> word;) out.push_back(drawn_one(word));
  return out;
}

void module_case(const char* python, const char* call, const char* inputs, const std::function<Made()>& make) {
  std::printf("module | %s | %s | %s\n", python, call, inputs);
  strata::manual_seed(7);
  const Made made = make();
  for (const auto& [name, value] : made.module->state_dict()) put("state " + name, value);
  const Tensors x = drawn(inputs);
  Tensor total;
  for (const Tensor& y : made.call(x)) {
    put("result", y);
    if (!y.requires_grad()) continue;
    const Tensor part = (y * strata::randn_like(y)).sum();
    total = total.defined() ? total + part : part;
  }
  if (total.defined()) total.backward();
  for (const auto& [name, p] : made.module->named_parameters())
    if (p.grad().defined()) put("gradient of " + name, p.grad());
  for (const Tensor& each : x)
    if (each.grad().defined()) put("gradient of input", each.grad());
  for (const auto& [name, value] : made.module->named_buffers()) put("buffer " + name, value);
  made.module->eval();
  const strata::NoGradGuard off;
  for (const Tensor& y : made.call(x)) put("evaluated", y);
}

namespace {
// The parameters of two layers, and a step's loss.
struct Task {
  nn::Sequential model{nn::Linear(3, 5), nn::Tanh(), nn::Linear(5, 2)};
  Tensor x = strata::randn({4, 3});
  void backward() { model(x).square().sum().backward(); }
};
}  // namespace

void optimizer_case(const char* python, const MakeOptimizer& make) {
  std::printf("optimizer | %s\n", python);
  strata::manual_seed(7);
  Task task;
  auto optimizer = make(task.model->parameters());
  strata::NamedTensors saved;
  for (int step = 0; step < 6; ++step) {
    optimizer->zero_grad();
    task.backward();
    if (step == 3) {  // another one goes on from what was saved
      saved = optimizer->state_dict();
      optimizer = make(task.model->parameters());
      optimizer->load_state_dict(saved);
    }
    optimizer->step();
    for (const auto& [name, p] : task.model->named_parameters()) put(name, p);
  }
  for (const auto& [name, value] : optimizer->state_dict())
    if (name.starts_with("state.")) put(name, value);
}

void schedule_case(const char* python, const MakeSchedule& make) {
  std::printf("schedule | %s\n", python);
  const Tensor a = strata::ones({1}).requires_grad_(), b = strata::ones({1}).requires_grad_();
  optim::SGD optimizer({{{a}, {.lr = 0.5}}, {{b}, {.lr = 0.125}}});
  const auto step = make(optimizer);
  for (int k = 0; k < 20; ++k) {
    put("rates", strata::tensor<double>({optimizer.lr(0), optimizer.lr(1)}));
    optimizer.step();
    step(k);
  }
}

}  // namespace harness

int main() try {
  harness::layers();
  harness::images();
  harness::losses();
  harness::sequences();
  harness::optimizers();
  return 0;
} catch (const std::exception& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "cpp_modules: %s\n", error.what());
  return 1;
}
