// Launches of pointwise kernels that write in place, collected and run together: their elements are divided among the
// threads as one, so that many small tensors cost as little as few large ones; one after the other where one
// writes what another one uses. What could be refused is when it is added.
#pragma once
#include <string>

#include "run/pointwise.h"

namespace strata::eager {

class Launches {
 public:
  explicit Launches(std::string_view name) : name_(name) {}  // for errors
  // Outputs and inputs of the kernel, and its scalars; the first output's shape and dtype are those of all.
  void append(const PointwiseOp& op, std::vector<Tensor> outputs, std::vector<Tensor> inputs,
              std::vector<Scalar> scalars);
  void run() const;

 private:
  bool depend() const;
  struct Item {
    const PointwiseOp* op;
    std::vector<Tensor> outputs, inputs;
    std::vector<Scalar> scalars;
    bool plain = false;  // one dtype, contiguous
  };
  std::string name_;
  std::vector<Item> items_;
};

}  // namespace strata::eager
