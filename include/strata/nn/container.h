// Containers of modules and of parameters.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

// Modules by their numbers, registered. Written with braces, nn::ModuleList{nn::Linear(2, 3), nn::ReLU()}, they are
// made in that order by any compiler, and draw their initial values so.
class ModuleListImpl : public Module {
 public:
  ModuleListImpl() = default;
  template <class... Modules>
  explicit ModuleListImpl(Modules&&... modules) {
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
  size_t size() const { return row_.size(); }
  Module& operator[](size_t k) const { return *row_.at(k); }
  auto begin() const { return row_.begin(); }
  auto end() const { return row_.end(); }

 private:
  std::vector<std::shared_ptr<Module>> row_;
};
STRATA_MODULE(ModuleList);

// One after the other.
class SequentialImpl : public ModuleListImpl {
 public:
  using ModuleListImpl::ModuleListImpl;
  Tensor forward(const Tensor& input) override {
    Tensor x = input;
    for (const auto& module : *this) x = module->forward(x);
    return x;
  }
};
STRATA_MODULE(Sequential);

// Modules by name, registered, in the order in which they came.
class ModuleDictImpl : public Module {
 public:
  template <class M>
  M insert(std::string name, M module) {
    return register_module(std::move(name), std::move(module));
  }
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  size_t size() const { return named_children().size(); }
  Module& operator[](const std::string& name) const {
    const std::shared_ptr<Module> found = find(name);
    STRATA_CHECK_VALUE(found, "ModuleDict: no module '", name, "'");
    return *found;
  }

 private:
  std::shared_ptr<Module> find(const std::string& name) const {
    for (const auto& [key, module] : named_children())
      if (key == name) return module;
    return nullptr;
  }
};
STRATA_MODULE(ModuleDict);

// Parameters by their numbers, and by name.
class ParameterListImpl : public Module {
 public:
  ParameterListImpl() = default;
  explicit ParameterListImpl(std::vector<Tensor> values) {
    for (Tensor& value : values) push_back(std::move(value));
  }
  void push_back(Tensor value) { row_.push_back(register_parameter(std::to_string(row_.size()), std::move(value))); }
  size_t size() const { return row_.size(); }
  const Tensor& operator[](size_t k) const { return row_.at(k); }
  auto begin() const { return row_.begin(); }
  auto end() const { return row_.end(); }

 private:
  std::vector<Tensor> row_;
};
STRATA_MODULE(ParameterList);

class ParameterDictImpl : public Module {
 public:
  Tensor insert(std::string name, Tensor value) { return register_parameter(std::move(name), std::move(value)); }
  Tensor operator[](const std::string& name) const {
    for (const auto& [key, value] : named_parameters())
      if (key == name) return value;
    throw_error(ErrorKind::Value, str_cat("ParameterDict: no parameter '", name, "'"));
  }
  size_t size() const { return named_parameters().size(); }
};
STRATA_MODULE(ParameterDict);

}  // namespace strata::nn
