#include "strata/optim/optimizer.h"

#include <algorithm>
#include <set>

namespace strata::optim {

namespace {
void check_rate(double lr) {
  STRATA_CHECK_VALUE(lr >= 0, "optimizer: expected a learning rate of at least 0, got ", lr);
}
// Complex tensors as real ones with a last dim of 2.
Tensor as_real(const Tensor& t) { return is_complex(t.dtype()) ? ops::view_as_real(t) : t; }
}  // namespace

void Optimizer::add_group(std::vector<Tensor> params, double lr) {
  STRATA_CHECK_VALUE(!params.empty(), "optimizer got an empty parameter list");
  std::set<const void*> seen;
  for (const Tensor& p : parameters()) seen.insert(p.impl());
  for (const Tensor& p : params) {
    STRATA_CHECK_VALUE(p.defined() && p.is_leaf(), "optimizer: expected leaf tensors, got one that is computed");
    STRATA_CHECK_VALUE(seen.insert(p.impl()).second, "optimizer: a parameter is there twice");
  }
  check_rate(lr);
  std::vector<State> states(params.size());
  groups_.push_back({std::move(params), std::move(states), lr, std::nullopt});
}

void Optimizer::set_lr(double lr) {
  for (size_t g = 0; g < groups_.size(); ++g) set_lr(g, lr);
}

void Optimizer::set_lr(size_t group, double lr) {
  check_rate(lr);
  groups_.at(group).lr = lr;
}

double Optimizer::initial_lr(size_t group) {
  Group& g = groups_.at(group);
  if (!g.initial_lr) g.initial_lr = g.lr;
  return *g.initial_lr;
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (const Group& group : groups_) all.insert(all.end(), group.params.begin(), group.params.end());
  return all;
}

Tensor Optimizer::new_buffer(size_t, const std::string&, const Tensor& parameter) const {
  return ops::zeros_like(parameter);
}

Optimizer::State Optimizer::new_state(size_t group, const Tensor& parameter) const {
  State s;
  s.made = true;
  // Numbers of a step are computed on the CPU.
  if (counts_steps()) s.step = ops::zeros({}, DType::F32, Device{});
  s.names = buffers(group, parameter);
  for (const char* name : s.names) s.buffers.push_back(*name ? new_buffer(group, name, parameter) : Tensor());
  return s;
}

void Optimizer::step() {
  const NoGradGuard off;
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    std::vector<std::pair<size_t, bool>> all;  // numbers, and whether it is the first step
    for (size_t k = 0; k < group.params.size(); ++k) {
      const Tensor& p = group.params[k];
      if (!p.grad().defined()) continue;
      all.emplace_back(k, !group.states[k].made);
      if (!group.states[k].made) group.states[k] = new_state(g, p);
    }
    while (!all.empty()) {  // those that are like the first one
      const auto [lead, first] = all.front();
      const Tensor& like = group.params[lead];
      const State& kept = group.states[lead];
      Lists lists;
      lists.lr = group.lr;
      lists.first = first;
      lists.buffers.resize(kept.names.size());
      std::vector<std::pair<size_t, bool>> others;
      for (const auto& [k, fresh] : all) {
        const Tensor& p = group.params[k];
        const State& s = group.states[k];
        if (fresh != first || p.dtype() != like.dtype() || p.device() != like.device() || s.names != kept.names) {
          others.emplace_back(k, fresh);
          continue;
        }
        lists.params.push_back(as_real(p));
        lists.grads.push_back(as_real(p.grad()));
        for (size_t b = 0; b < s.buffers.size(); ++b)
          if (s.buffers[b].defined()) lists.buffers[b].push_back(as_real(s.buffers[b]));
        if (s.step.defined()) lists.steps.push_back(s.step);
      }
      if (!lists.steps.empty()) ops::_foreach_add_(lists.steps, Scalar(1));
      update(g, lists);
      all = std::move(others);
    }
  }
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  const GradModeGuard on(true);
  const Tensor loss = closure();
  step();
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters()) {
    const Tensor g = p.grad();
    if (!g.defined()) continue;
    set_grad(p, set_to_none ? Tensor() : ops::zeros_like(g));
  }
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors out;
  size_t number = 0;
  for (const Group& group : groups_)
    for (const State& s : group.states) {
      const std::string prefix = str_cat("state.", number++, ".");
      if (s.step.defined()) out.emplace_back(prefix + "step", s.step);
      for (size_t b = 0; b < s.buffers.size(); ++b)
        if (s.buffers[b].defined()) out.emplace_back(prefix + s.names[b], s.buffers[b]);
    }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::string prefix = str_cat("param_groups.", g, ".");
    out.emplace_back(prefix + "lr", tensor<double>({groups_[g].lr}));
    if (groups_[g].initial_lr) out.emplace_back(prefix + "initial_lr", tensor<double>({*groups_[g].initial_lr}));
  }
  return out;
}

void Optimizer::load_state_dict(const NamedTensors& state) {
  const NoGradGuard off;
  std::map<std::string, Tensor> given(state.begin(), state.end());
  const auto take = [&](const std::string& name) {
    const auto at = given.find(name);
    if (at == given.end()) return Tensor();
    const Tensor found = at->second;
    given.erase(at);
    return found;
  };
  std::vector<Group> fresh = groups_;
  size_t number = 0;
  for (size_t g = 0; g < fresh.size(); ++g) {
    for (size_t k = 0; k < fresh[g].params.size(); ++k) {
      const std::string prefix = str_cat("state.", number++, ".");
      State s = new_state(g, fresh[g].params[k]);
      bool any = false, all = true;
      const auto fill = [&](const Tensor& to, const std::string& name) {
        const Tensor from = take(prefix + name);
        (from.defined() ? any : all) = from.defined();
        if (!from.defined()) return;
        STRATA_CHECK(from.sizes() == to.sizes(), "load_state_dict: ", prefix, name, ": expected sizes ", to.sizes(),
                     ", got ", from.sizes());
        ops::copy_(to, from);
      };
      if (s.step.defined()) fill(s.step, "step");
      for (size_t b = 0; b < s.buffers.size(); ++b)
        if (s.buffers[b].defined()) fill(s.buffers[b], s.names[b]);
      STRATA_CHECK(all || !any, "load_state_dict: ", prefix, "*: a part of the parameter's state is missing");
      fresh[g].states[k] = any ? std::move(s) : State();
    }
    const std::string prefix = str_cat("param_groups.", g, ".");
    if (const Tensor lr = take(prefix + "lr"); lr.defined()) fresh[g].lr = item<double>(lr);
    if (const Tensor lr = take(prefix + "initial_lr"); lr.defined()) fresh[g].initial_lr = item<double>(lr);
  }
  STRATA_CHECK(given.empty(), "load_state_dict: not expected: ", given.begin()->first,
               "; load what an optimiser of the same kind and groups saved");
  groups_ = std::move(fresh);
}

}  // namespace strata::optim
