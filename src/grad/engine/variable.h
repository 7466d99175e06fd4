// What autograd adds to a tensor: its gradient, its node, its hooks, and the history of views and in-place writes.
#pragma once
#include "grad/engine/node.h"

namespace strata {

// Operators run, and what was a gradient dies, without `lock`: both may come back here, or wait for who waits for it.
struct AutogradMeta : AutogradMetaBase {
  std::mutex lock;
  std::recursive_mutex adding;  // held while a gradient is added; taken before `lock`
  Tensor grad;
  Node* accumulator = nullptr;         // weak; cleared by the accumulator's destructor
  HookList<TensorHook> pending_hooks;  // of a leaf; its accumulator gets them when one is made
  HookList<NodePostHook> accumulate_hooks;
  std::shared_ptr<Tensor> retained;  // the gradient of a non-leaf whose retain_grad was called
  std::string name;
};

AutogradMeta& autograd_meta(const Tensor& t);       // made when missing
AutogradMeta* find_autograd_meta(const Tensor& t);  // null when there is none

// Brings the node of a view up to date with writes to its base.
void refresh_view(const Tensor& view);
bool view_needs_grad(const Tensor& view);
// requires_grad, after the history of a view has been brought up to date with its base.
inline bool needs_grad(const Tensor& t) {
  const TensorImpl* impl = t.impl();
  if (!impl) return false;
  if (STRATA_UNLIKELY(impl->base_ != nullptr)) return view_needs_grad(t);
  return impl->requires_grad_ || impl->grad_fn_;
}
const Ref<NodeBase>& grad_fn(const Tensor& t);
Edge gradient_edge(const Tensor& t);                  // none for a view that requires a gradient by its base alone
void set_requires_grad(const Tensor& t, bool value);  // raises for non-leaves and for integers
// t.alias(); where operators are recorded by the operator detach, which they see.
Tensor recorded_alias(const Tensor& t);
Tensor grad_of(const Tensor& t);
void set_grad(const Tensor& t, const Tensor& grad);
// `t` becomes a tensor of `from`'s memory, sizes, dtype and device, and keeps its own place in autograd.
void set_data(const Tensor& t, const Tensor& from);

// Records `node` as the maker of `t` (output number in the order of calls).
void set_history(const Tensor& t, const Ref<Node>& node);
// After an in-place operator on `t` recorded `node`: `t`, its base and its other views get the new history.
void rebase_history(const Tensor& t, const Ref<Node>& node);
// An out= form that reads or writes what requires grad.
[[noreturn]] void refuse_out(const char* op);
// Before an in-place operator: raises for leaves that require grad and for views of them.
void check_inplace(const Tensor& t, const char* op);
// An edge to what an operator that is recorded will write. Raises for views whose history is not followed.
void add_written_edge(Node& node, const Tensor& t);
// `view` was made from `base` by a view operator: links it to base's base.
void mark_view(const Tensor& view, const Tensor& base);
// The same of what a custom function gave: its history is the function's, so that recorded writes to one of them are
// refused.
void mark_function_view(const Tensor& view, const Tensor& base);
// The history of `view` becomes that of `from`, which shows the same elements, until the view's base is written.
void take_history(const Tensor& view, const Tensor& from);
inline bool needs_grad_list(TensorList list) {
  for (const Tensor& t : list)
    if (t.defined() && needs_grad(t)) return true;
  return false;
}

// Adds a gradient into the leaf's .grad.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable);
  ~AccumulateGrad() override;
  std::string name() const override { return "AccumulateGrad"; }
  Grads apply(Grads&& grads) override;
  bool is_accumulator() const override { return true; }
  Tensor variable;
};

int64_t register_tensor_hook(const Tensor& t, std::function<Tensor(const Tensor&)> fn);
void retain_grad(const Tensor& t);
int64_t register_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> fn);
void remove_tensor_hook(const Tensor& t, int64_t id);

}  // namespace strata
