// Optimizer: groups of parameters, each with a rate of its own, and what is kept for each parameter.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "strata/nn/module.h"

namespace strata::optim {

// Parameters with options of their own.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  // Takes one step along the gradients; parameters without one stay.
  virtual void step();
  // The same after `closure`, which computes the loss and its gradients anew, and whose result is given back.
  virtual Tensor step(const std::function<Tensor()>& closure);
  // Gradients become undefined, or zeros.
  void zero_grad(bool set_to_none = true);

  size_t num_groups() const { return groups_.size(); }
  double lr(size_t group = 0) const { return groups_.at(group).lr; }
  void set_lr(double lr);  // of all groups
  void set_lr(size_t group, double lr);
  // The rate that a schedule starts from: the one before the first schedule was made.
  double initial_lr(size_t group);
  std::vector<Tensor> parameters() const;

  // "state.K.NAME" for what is kept of parameter K, counted over all groups, with Python's names, and
  // "param_groups.G.lr" and ".initial_lr". Tensors of state share memory with the optimiser's.
  NamedTensors state_dict() const;
  // Takes over rates and state. Raises Runtime for names that it has no place for; nothing is changed then.
  void load_state_dict(const NamedTensors& state);

 protected:
  Optimizer() = default;
  // Raises Value for no parameters, for one that is there twice or is no leaf, and for a rate below 0.
  void add_group(std::vector<Tensor> params, double lr);

  // Parameters of one group, dtype and device, which keep the same buffers: lists as operators take them.
  struct Lists {
    std::vector<Tensor> params, grads;
    std::vector<std::vector<Tensor>> buffers;
    std::vector<Tensor> steps;  // counts, this step among them
    double lr;
    bool first;  // it is the first step of all of them
  };
  // Names of what is kept of a parameter, in the order of the operator's lists; "" is a list that stays empty.
  virtual std::vector<const char*> buffers(size_t group, const Tensor& parameter) const = 0;
  virtual Tensor new_buffer(size_t group, const std::string& name, const Tensor& parameter) const;
  virtual bool counts_steps() const { return true; }
  virtual void update(size_t group, const Lists& lists) = 0;

 private:
  struct State {
    Tensor step;
    std::vector<const char*> names;
    std::vector<Tensor> buffers;
    bool made = false;
  };
  struct Group {
    std::vector<Tensor> params;
    std::vector<State> states;
    double lr;
    std::optional<double> initial_lr;
  };
  State new_state(size_t group, const Tensor& parameter) const;
  std::vector<Group> groups_;
};

// An optimiser whose groups have Options, which hold `lr`; check(options) says what they may be.
template <class Options>
class OptimizerOf : public Optimizer {
 public:
  const Options& options(size_t group = 0) const { return options_.at(group); }

 protected:
  OptimizerOf(std::vector<Tensor> parameters, Options options) { add(std::move(parameters), std::move(options)); }
  explicit OptimizerOf(std::vector<ParamGroup<Options>> groups) {
    STRATA_CHECK_VALUE(!groups.empty(), "optimizer got an empty parameter list");
    for (auto& group : groups) add(std::move(group.params), std::move(group.options));
  }

 private:
  void add(std::vector<Tensor> parameters, Options options) {
    check(options);
    add_group(std::move(parameters), options.lr);
    options_.push_back(std::move(options));
  }
  std::vector<Options> options_;
};

// NAME has NAMEOptions and steps by one operator, which update() calls.
#define STRATA_OPTIMIZER(NAME, ...)                                                                  \
  void check(const NAME##Options& options);                                                          \
  class NAME final : public OptimizerOf<NAME##Options> {                                             \
   public:                                                                                           \
    explicit NAME(std::vector<Tensor> parameters, NAME##Options options = {})                        \
        : OptimizerOf(std::move(parameters), std::move(options)) {}                                  \
    explicit NAME(std::vector<ParamGroup<NAME##Options>> groups) : OptimizerOf(std::move(groups)) {} \
                                                                                                     \
   private:                                                                                          \
    std::vector<const char*> buffers(size_t group, const Tensor& parameter) const override;          \
    void update(size_t group, const Lists& lists) override;                                          \
    __VA_ARGS__                                                                                      \
  }

}  // namespace strata::optim
