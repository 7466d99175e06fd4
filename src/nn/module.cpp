#include "strata/nn/module.h"

#include <algorithm>
#include <set>

#include "base/near.h"

namespace strata::nn {

Tensor Module::forward(const Tensor&) {
  throw_error(ErrorKind::NotImplemented, "a module of one tensor has to override forward(const Tensor&)");
}

void Module::check_name(const std::string& name) const {
  STRATA_CHECK(!name.empty() && name.find('.') == std::string::npos, "expected a name without a dot, got '", name, "'");
  auto has = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& p) { return p.first == name; });
  };
  STRATA_CHECK(!has(parameters_) && !has(buffers_) && !has(children_), "the name '", name,
               "' is there already; a module has each once");
}

Tensor Module::register_parameter(std::string name, Tensor value, bool requires_grad) {
  check_name(name);
  if (value.defined()) set_requires_grad(value, requires_grad);
  parameters_.emplace_back(std::move(name), value);
  return value;
}

Tensor Module::register_buffer(std::string name, Tensor value) {
  check_name(name);
  buffers_.emplace_back(std::move(name), value);
  return value;
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name(name);
  STRATA_CHECK(module, "the module '", name, "': expected a module, got none");
  children_.emplace_back(std::move(name), std::move(module));
}

void Module::collect(const std::string& prefix, bool parameters, bool buffers, NamedTensors& out) const {
  auto add = [&](const NamedTensors& list) {
    for (const auto& [name, value] : list)
      if (value.defined()) out.emplace_back(prefix + name, value);
  };
  if (parameters) add(parameters_);
  if (buffers) add(buffers_);
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", parameters, buffers, out);
}

namespace {
NamedTensors once(const NamedTensors& all) {
  NamedTensors out;
  std::set<const void*> seen;
  for (const auto& p : all)
    if (seen.insert(p.second.impl()).second) out.push_back(p);
  return out;
}
}  // namespace

NamedTensors Module::named_parameters() const {
  NamedTensors all;
  collect("", true, false, all);
  return once(all);
}

NamedTensors Module::named_buffers() const {
  NamedTensors all;
  collect("", false, true, all);
  return once(all);
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (auto& [name, value] : named_parameters()) out.push_back(value);
  return out;
}

void Module::apply(const std::function<void(Module&)>& what) {
  what(*this);
  for (const auto& [name, child] : children_) child->apply(what);
}

void Module::train(bool on) {
  apply([on](Module& m) { m.training_ = on; });
}

void Module::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters()) {
    const Tensor g = grad_of(p);
    if (!g.defined()) continue;
    if (set_to_none)
      set_grad(p, Tensor());
    else
      set_grad(p, ops::zeros_like(g));
  }
}

void Module::requires_grad_(bool on) {
  for (const Tensor& p : parameters()) set_requires_grad(p, on);
}

void Module::replace(const std::function<Tensor(const Tensor&)>& made) {
  const NoGradGuard off;
  NamedTensors all;
  collect("", true, true, all);
  for (auto& [name, value] : once(all)) {
    const Tensor fresh = made(value);
    if (fresh.is_same(value)) continue;
    const Tensor g = grad_of(value);
    set_data(value, fresh);
    if (g.defined()) set_grad(value, made(g));
  }
}

void Module::to(Device device) {
  replace([&](const Tensor& t) { return ops::to(t, device, t.dtype()); });
}

void Module::to(DType dtype) {
  replace([&](const Tensor& t) { return is_float(t.dtype()) ? ops::to(t, dtype) : t; });
}

NamedTensors Module::state_dict() const {
  NamedTensors all;
  collect("", true, true, all);
  for (auto& [name, value] : all) value = ops::detach(value);
  return all;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  NamedTensors own;
  collect("", true, true, own);
  std::string missing, unexpected, sizes;
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (const auto& [name, value] : own) {
    const auto at = std::find_if(state.begin(), state.end(), [&](const auto& p) { return p.first == name; });
    if (at == state.end())
      missing += " " + name;
    else if (at->second.sizes() != value.sizes())
      sizes += str_cat(" ", name, ": expected ", value.sizes(), ", got ", at->second.sizes(), ";");
    else
      pairs.emplace_back(value, at->second);
  }
  for (const auto& [name, value] : state)
    if (std::none_of(own.begin(), own.end(), [&](const auto& p) { return p.first == name; })) unexpected += " " + name;
  if (!strict) missing = unexpected = "";
  STRATA_CHECK(missing.empty() && unexpected.empty() && sizes.empty(),
               "load_state_dict:", missing.empty() ? "" : " missing:" + missing,
               unexpected.empty() ? "" : " not expected:" + unexpected,
               sizes.empty() ? "" : " sizes that differ:" + sizes);
  const NoGradGuard off;
  for (auto& [to, from] : pairs) ops::copy_(to, from);
}

}  // namespace strata::nn
