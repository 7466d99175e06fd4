// Losses.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

enum class Reduction { None = 0, Mean = 1, Sum = 2 };

namespace functional {

struct CrossEntropyOptions {
  Tensor weight;  // of each class
  Reduction reduction = Reduction::Mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
// Of scores (N, C, *) and classes (N, *), or probabilities like the scores.
inline Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {}) {
  return ops::cross_entropy_loss(input, target, options.weight, int64_t(options.reduction), options.ignore_index,
                                 options.label_smoothing);
}
inline Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean) {
  return ops::mse_loss(input, target, int64_t(reduction));
}

}  // namespace functional

class CrossEntropyLossImpl : public Module {
 public:
  using Module::forward;
  explicit CrossEntropyLossImpl(functional::CrossEntropyOptions options = {}) : options(std::move(options)) {}
  Tensor forward(const Tensor& input, const Tensor& target) {
    return functional::cross_entropy(input, target, options);
  }
  const functional::CrossEntropyOptions options;
};
STRATA_MODULE(CrossEntropyLoss);

}  // namespace strata::nn
