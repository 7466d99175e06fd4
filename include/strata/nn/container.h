// Modules in a row.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

// One after the other; their names are their numbers. Written with braces, nn::Sequential{nn::Linear(2, 3),
// nn::ReLU()}, they are made in that order by any compiler, and draw their initial values so.
class SequentialImpl : public Module {
 public:
  SequentialImpl() = default;
  template <class... Modules>
  explicit SequentialImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  template <class M>
  void push_back(const M& module) {
    push_back(std::shared_ptr<Module>(module.ptr()));
  }
  void push_back(std::shared_ptr<Module> module) {
    add_child(std::to_string(row_.size()), module);
    row_.push_back(std::move(module));
  }
  Tensor forward(const Tensor& input) override {
    Tensor x = input;
    for (const auto& module : row_) x = module->forward(x);
    return x;
  }
  size_t size() const { return row_.size(); }

 private:
  std::vector<std::shared_ptr<Module>> row_;
};
STRATA_MODULE(Sequential);

}  // namespace strata::nn
