// Module: parameters, buffers and modules by name, in the order in which they were registered. Names of state_dict()
// are those of Python's modules, so that files serve both.
#pragma once
#include <functional>
#include <memory>

#include "strata/autograd.h"
#include "strata/files.h"
#include "strata/tensors.h"

namespace strata::nn {

class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;

  // Of modules that take one tensor and give one. Raises NotImplemented unless a module says otherwise.
  virtual Tensor forward(const Tensor& input);

  // With the names of inner modules before theirs: "features.0.weight". A tensor that is registered twice comes once.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<Tensor> parameters() const;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> named_children() const { return children_; }
  // This module and all inner ones, outermost first.
  void apply(const std::function<void(Module&)>& what);

  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  // Gradients become undefined, or zeros.
  void zero_grad(bool set_to_none = true);
  void requires_grad_(bool on = true);
  // Parameters and buffers move in place; floating ones get the dtype. Gradients move along.
  void to(Device device);
  void to(DType dtype);

  // Parameters and buffers, which share memory with the result.
  NamedTensors state_dict() const;
  // Copies values into parameters and buffers. Raises Runtime with all names that are missing or not expected (unless
  // not strict) and all sizes that differ; nothing is changed then.
  void load_state_dict(const NamedTensors& state, bool strict = true);

 protected:
  // An undefined tensor is a parameter that is not there.
  Tensor register_parameter(std::string name, Tensor value, bool requires_grad = true);
  Tensor register_buffer(std::string name, Tensor value);
  // Gives the module (or its holder) back.
  template <class M>
  M register_module(std::string name, M module) {
    add_child(std::move(name), module.ptr());
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  void add_child(std::string name, std::shared_ptr<Module> module);

 private:
  void check_name(const std::string& name) const;
  void collect(const std::string& prefix, bool parameters, bool buffers, NamedTensors& out) const;
  void replace(const std::function<Tensor(const Tensor&)>& made);

  NamedTensors parameters_, buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

// A module by handle: copies are the same module, `->` reaches it, a call runs forward(). nullptr holds none.
template <class Impl>
class ModuleHolder {
 public:
  using Held = Impl;
  ModuleHolder(std::nullptr_t) {}
  explicit ModuleHolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  template <class... Args>
    requires(std::is_constructible_v<Impl, Args...> && sizeof...(Args) > 0)
  explicit(sizeof...(Args) == 1) ModuleHolder(Args&&... args)
      : impl_(std::make_shared<Impl>(std::forward<Args>(args)...)) {}
  ModuleHolder()
    requires std::is_default_constructible_v<Impl>
      : impl_(std::make_shared<Impl>()) {}

  Impl* operator->() const { return &*get(); }
  Impl& operator*() const { return *get(); }
  const std::shared_ptr<Impl>& ptr() const { return get(); }
  bool is_empty() const { return !impl_; }
  template <class... Args>
  auto operator()(Args&&... args) const {
    return get()->forward(std::forward<Args>(args)...);
  }

 private:
  const std::shared_ptr<Impl>& get() const {
    STRATA_CHECK(impl_, "a module's holder is empty: it was made of nullptr");
    return impl_;
  }
  std::shared_ptr<Impl> impl_;
};

// NAME is the holder of NAMEImpl.
#define STRATA_MODULE(NAME)                       \
  class NAME : public ModuleHolder<NAME##Impl> {  \
   public:                                        \
    using ModuleHolder<NAME##Impl>::ModuleHolder; \
  }

}  // namespace strata::nn
