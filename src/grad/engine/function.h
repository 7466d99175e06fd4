// Functions with a derivative of their own (autograd.Function), as C++ writes them:
//
//   struct Cube : Function<Cube> {
//     static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
//       ctx.save_for_backward({x});
//       ctx.values["scale"] = scale;
//       return ops::mul(ops::pow(x, Scalar(3)), Scalar(scale));
//     }
//     static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads);
//   };
//   Tensor y = Cube::apply(x, 2.0);
//
// forward returns a Tensor or a vector of them and runs without recording. backward gets one gradient per output and
// returns one per argument of forward, undefined for arguments that are no tensors or need none.
#pragma once
#include <any>
#include <map>
#include <memory>
#include <optional>
#include <typeinfo>

#include "dispatch/seen.h"
#include "dispatch/tls.h"
#include "grad/engine/saved_tensor.h"
#include "grad/engine/variable.h"

namespace strata {

// What the engine gives for an output whose gradient nobody gave: zeros.
Tensor zero_gradient(const OutputMeta& output);

// How forward used a tensor that it returned.
struct OutputUse {
  bool input;              // it is one of forward's arguments
  bool dirty;              // mark_dirty: forward wrote to it
  bool no_gradient;        // mark_non_differentiable, or nothing is recorded
  const char* saved_name;  // of the function, for version counters: must outlive the tensor
};
// Gives an output of a custom function its place in `node`; the result is what the caller gets, `t` or an alias of it.
Tensor take_output(const Ref<Node>& node, Tensor t, const OutputUse& use);

class FunctionContext {
 public:
  // Tensors that backward reads; inputs and outputs of forward only. In-place writes to them are then detected.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  std::vector<Tensor> saved_tensors() const;
  Tensor saved_tensor(size_t i) const { return saved_[i].unpack(node_); }
  // Arguments that forward wrote to; each must be returned.
  void mark_dirty(TensorList tensors) { note(dirty_, tensors); }
  void mark_non_differentiable(TensorList tensors) { note(fixed_, tensors); }
  // False: backward gets undefined tensors, not zeros, for outputs without a gradient.
  void set_materialize_grads(bool value) { materialize_ = value; }
  Tensor zero_gradient(size_t output) const { return strata::zero_gradient(node_->outputs[output]); }
  // Whether argument i of forward needs a gradient.
  bool needs_input_grad(size_t i) const { return i < needs_.size() && needs_[i]; }
  // Anything else that backward needs.
  std::map<std::string, std::any> values;
  std::shared_ptr<void> owner;  // the one thing of a function that keeps no other

 private:
  friend class FunctionNode;
  using Impls = std::vector<TensorImpl*>;  // few, if any
  static void note(Impls& list, TensorList tensors) {
    for (const Tensor& t : tensors) list.push_back(t.impl());
  }
  Node* node_ = nullptr;
  std::vector<Tensor> to_save_;
  std::vector<SavedTensor> saved_;
  Impls dirty_, fixed_;
  InlineVec<char, 8> needs_;
  bool materialize_ = true;
};

using FunctionBackward = std::vector<Tensor> (*)(FunctionContext&, const std::vector<Tensor>&);

// "CubeBackward" of a class `somewhere::Cube`; a text that stays.
const char* function_node_name(const std::type_info& function);

class FunctionNode final : public Node {
 public:
  // The name must outlive all tensors.
  FunctionNode(const char* name, FunctionBackward backward);
  std::string name() const override { return name_; }
  Grads apply(Grads&& grads) override;
  void release_saved() override;

  FunctionContext context;
  // By argument of forward: `t` is null for what is no tensor.
  void take_argument(const Tensor* t);
  // After forward: its outputs with their history.
  std::vector<Tensor> finish(std::vector<Tensor> outputs);

 private:
  const char* name_;
  FunctionBackward backward_;
  InlineVec<char, 8> input_is_tensor_;
  InlineVec<TensorImpl*, 8> inputs_;
  bool record_ = false;
};

template <class Derived>
struct Function {
  template <class... A>
  static auto apply(A&&... args) {
    static const char* const name = function_node_name(typeid(Derived));
    Ref<FunctionNode> node = make_node<FunctionNode>(name, &backward_of);
    (node->take_argument(tensor_in(args)), ...);
    auto outputs = [&] {
      GradModeGuard off(false);
      GradientNote own(GradientNote::Given);
      return Derived::forward(node->context, std::forward<A>(args)...);
    }();
    if constexpr (std::is_same_v<decltype(outputs), Tensor>)
      return node->finish({std::move(outputs)})[0];
    else
      return node->finish(std::move(outputs));
  }

 private:
  static std::vector<Tensor> backward_of(FunctionContext& context, const std::vector<Tensor>& grads) {
    GradientNote own(GradientNote::Back);
    return Derived::backward(context, grads);
  }
  static const Tensor* tensor_in(const Tensor& t) { return &t; }
  static const Tensor* tensor_in(const std::optional<Tensor>& t) { return t ? &*t : nullptr; }
  template <class T>
  static const Tensor* tensor_in(const T&) {
    static_assert(!std::is_convertible_v<const T&, TensorList>, "Function::apply: pass each tensor as an argument");
    return nullptr;
  }
};

}  // namespace strata
