// Runs one generated update kernel over lists of tensors: all of their elements are divided among the threads together,
// so that many small tensors cost as little as few large ones.
#pragma once
#include "eager/pointwise.h"

namespace strata::optim {

class ListStep {
 public:
  // `op` has its operands in the order of add().
  ListStep(const eager::PointwiseOp& op, const char* name) : op_(op), name_(name) {}
  // The i-th tensors: outputs (written in place) and inputs of the kernel, and its scalars.
  void add(std::vector<Tensor> outputs, std::vector<Tensor> inputs, std::vector<Scalar> scalars);
  void run();

 private:
  struct Item {
    std::vector<Tensor> outputs, inputs;
    std::vector<Scalar> scalars;
    bool plain = false;  // one dtype, contiguous
  };
  const eager::PointwiseOp& op_;
  const char* name_;
  std::vector<Item> items_;
};

}  // namespace strata::optim
