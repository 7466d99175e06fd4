// Trains the network of examples/digits.py on the same digits, without Python: the same seed gives the same losses, bit
// for bit.
//
//   digits FILE [--epochs N] [--seed S] [--hex]
//
// FILE: lines of 64 pixels from 0 to 16 and a label, with commas between (zcat sklearn/datasets/data/digits.csv.gz).
#include <strata/strata.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

namespace nn = strata::nn;
namespace optim = strata::optim;
using strata::Tensor;

// Two convolutions with batch norm, then two linear layers with dropout: (N, 1, 8, 8) to (N, 10).
struct Net : nn::Module {
  nn::Sequential features{nullptr}, head{nullptr};
  Net() {
    const nn::Conv2dOptions same{.padding = 1};
    features = register_module(
        "features", nn::Sequential{nn::Conv2d(1, 32, 3, same), nn::BatchNorm2d(32), nn::ReLU(),
                                   nn::Conv2d(32, 64, 3, same), nn::BatchNorm2d(64), nn::ReLU(), nn::MaxPool2d(2)});
    head = register_module("head", nn::Sequential{nn::Flatten(), nn::Linear(64 * 16, 128), nn::ReLU(), nn::Dropout(0.3),
                                                  nn::Linear(128, 10)});
  }
  Tensor forward(const Tensor& x) override { return head(features(x)); }
};

struct Digits {
  Tensor images, labels;  // (N, 1, 8, 8) in [0, 1], and (N)
};

Digits read_digits(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("can't read ") + path);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  std::string line;
  while (std::getline(file, line)) {
    const char* at = line.c_str();
    for (int k = 0; k < 65; ++k) {
      char* end = nullptr;
      const double value = std::strtod(at, &end);
      if (end == at) throw std::runtime_error("a line of other than 65 numbers: " + line);
      if (k < 64)
        pixels.push_back(float(value));
      else
        labels.push_back(int64_t(value));
      at = end + (*end == ',');
    }
  }
  const int64_t n = int64_t(labels.size());
  return {strata::from_values<float>(pixels, strata::IntArrayRef({n, 1, 8, 8})) / 16.0,
          strata::from_values<int64_t>(labels)};
}

int main(int argc, char** argv) try {
  const char* path = nullptr;
  int64_t epochs = 3, seed = 0;
  bool hex = false;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--epochs" && k + 1 < argc)
      epochs = std::atoll(argv[++k]);
    else if (word == "--seed" && k + 1 < argc)
      seed = std::atoll(argv[++k]);
    else if (word == "--hex")
      hex = true;
    else
      path = argv[k];
  }
  if (!path) {
    std::fprintf(stderr, "usage: digits FILE [--epochs N] [--seed S] [--hex]\n");
    return 2;
  }
  strata::manual_seed(uint64_t(seed));
  const Digits all = read_digits(path);
  // A fifth is held out, by a draw of its own.
  const int64_t n = all.labels.size(0), held = n / 5;
  const Tensor order = strata::randperm(n, strata::Generator::make({}, uint64_t(seed)));
  const Tensor test = order.narrow(0, 0, held), train = order.narrow(0, held, n - held);
  const strata::data::DataLoader loader({all.images.index_select(0, train), all.labels.index_select(0, train)},
                                        {.batch_size = 64, .shuffle = true});
  Net model;
  optim::AdamW optimizer(model.parameters(), {2e-3, 1e-2});
  optim::OneCycleLR schedule(optimizer, 4e-3, epochs * loader.size());
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0;
    for (const auto& batch : loader) {
      optimizer.zero_grad();
      const Tensor loss = nn::functional::cross_entropy(model.forward(batch[0]), batch[1]);
      loss.backward();
      optimizer.step();
      schedule.step();
      const float value = strata::item<float>(loss);
      if (hex) std::printf("%a\n", double(value));
      sum += value;
    }
    std::fprintf(stderr, "epoch %lld of %lld: mean loss %.4f\n", (long long)(epoch + 1), (long long)epochs,
                 sum / double(loader.size()));
  }
  model.eval();
  const strata::NoGradGuard off;
  const Tensor predicted = model.forward(all.images.index_select(0, test)).argmax(1);
  const double right = strata::item<double>(predicted.eq(all.labels.index_select(0, test)).sum()) / double(held);
  std::fprintf(stderr, "%.2f %% of the %lld held-out images are read rightly\n", 100 * right, (long long)held);
  if (hex)
    for (const auto& [name, p] : model.state_dict())
      std::printf("%s %a\n", name.c_str(), strata::item<double>(p.to(strata::DType::F64).abs().sum()));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "digits: %s\n", error.what());
  return 1;
}
