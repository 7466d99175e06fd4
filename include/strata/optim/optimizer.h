// Optimizer: parameters and what is kept for each.
#pragma once
#include <memory>

#include "strata/nn/module.h"

namespace strata::optim {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  // Takes one step along the gradients; parameters without one stay.
  void step();
  // Gradients become undefined, or zeros.
  void zero_grad(bool set_to_none = true);
  double lr() const { return lr_; }
  void set_lr(double lr);
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  // Raises Value for no parameters, for one that is there twice or is no leaf, and for a rate below 0.
  Optimizer(std::vector<Tensor> parameters, double lr);
  // Parameters of one dtype and device and their gradients; `which` are their numbers.
  virtual void update(const std::vector<size_t>& which, const std::vector<Tensor>& params,
                      const std::vector<Tensor>& grads) = 0;

 private:
  std::vector<Tensor> parameters_;
  double lr_;
};

}  // namespace strata::optim
