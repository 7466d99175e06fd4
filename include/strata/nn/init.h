// Initial values, written in place and outside of autograd; the same draws as Python's strata.nn.init. Each gives its
// tensor.
#pragma once
#include "strata/tensors.h"

namespace strata::nn::init {

// While it lives, the functions here leave tensors of this thread as they are: for modules whose values are copied
// next.
class Unset {
 public:
  Unset();
  ~Unset();
  Unset(const Unset&) = delete;

 private:
  const bool before_;
};

Tensor uniform_(const Tensor& t, double a = 0, double b = 1);
Tensor normal_(const Tensor& t, double mean = 0, double std = 1);
Tensor constant_(const Tensor& t, double value);
Tensor zeros_(const Tensor& t);
Tensor ones_(const Tensor& t);
enum class Fan { In, Out };
// Elements that one output sums, and that one input goes to. Raises Value for fewer than two dims.
std::pair<int64_t, int64_t> fans(const Tensor& weight);
// Uniform in +-gain sqrt(3 / fan), normal of gain / sqrt(fan), where gain is sqrt(2 / (1 + slope^2)): He et al.,
// arXiv:1502.01852.
Tensor kaiming_uniform_(const Tensor& t, double slope = 0, Fan fan = Fan::In);
Tensor kaiming_normal_(const Tensor& t, double slope = 0, Fan fan = Fan::In);
// Uniform in +-gain sqrt(6 / (in + out)), normal of gain sqrt(2 / (in + out)): Glorot and Bengio, 2010.
Tensor xavier_uniform_(const Tensor& t, double gain = 1);
Tensor xavier_normal_(const Tensor& t, double gain = 1);

}  // namespace strata::nn::init
