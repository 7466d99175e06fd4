#include "grad/engine/saved_tensor.h"

#include "grad/engine/saved_result.h"

#include "core/promote.h"
#include "dispatch/seen.h"
#include "dispatch/tls.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops/view.h"

namespace strata {

namespace {
struct HookStack {
  std::vector<std::shared_ptr<SavedHooks>> hooks;
  std::unique_ptr<std::string> error;  // small: room that every thread has is scarce
};
HookStack& hook_stack() {
  static thread_local HookStack stack;
  return stack;
}

Tensor alias_of(const Tensor& t) {
  if (STRATA_LIKELY(!dispatch_tls.include.has(Key::Tracer))) return t.alias();
  const GradientNote saved(GradientNote::Saved);
  return recorded_alias(t);
}

// The same values without history. A tensor that a front end holds (Key::Python) is shown by an object of its own kind,
// which only its detach can make.
Tensor without_history(const Tensor& t) {
  if (STRATA_LIKELY(!t.keys().has(Key::Python))) return alias_of(t);
  ExcludeGuard plain(Key::Autograd | Key::InplaceOrView);
  return ops::detach(t);
}

// What hooks make of it. They get its values alone: whoever keeps them keeps no history, of which this may be a part.
std::unique_ptr<SavedHooks::Packed> packed(SavedHooks& hooks, const Tensor& t) {
  const GradModeGuard off(false);
  const Tensor values = without_history(t);
  const uint32_t before = values.version();
  std::unique_ptr<SavedHooks::Packed> made = hooks.pack(values);
  STRATA_CHECK(values.version() == before,
               "A saved tensor pack hook is modifying its input in place: expected a hook that leaves the tensor as it "
               "is, which others use; write into a clone().");
  return made;
}
}  // namespace

namespace {
thread_local SavedResultOf* saved_results = nullptr;
}

SavedResultOf::SavedResultOf(const Node* node, std::function<Ref<Node>()> history)
    : node_(node), history_(std::move(history)), outer_(saved_results) {
  saved_results = this;
}
SavedResultOf::~SavedResultOf() { saved_results = outer_; }

Ref<Node> SavedResultOf::history_of(const Node* node) {
  if (STRATA_LIKELY(!saved_results) || !grad_enabled()) return {};
  for (const SavedResultOf* s = saved_results; s; s = s->outer_)
    if (s->node_ == node) return s->history_();
  return {};
}

void push_saved_hooks(std::shared_ptr<SavedHooks> hooks) {
  STRATA_CHECK(!hook_stack().error, *hook_stack().error);
  hook_stack().hooks.push_back(std::move(hooks));
}
void pop_saved_hooks() {
  STRATA_CHECK(!hook_stack().hooks.empty(),
               "saved_tensors_hooks: none of them is at work here; leave them in the order in which they were entered");
  hook_stack().hooks.pop_back();
}
SavedHooksAside::SavedHooksAside() { hooks_.swap(hook_stack().hooks); }
SavedHooksAside::~SavedHooksAside() { hooks_.swap(hook_stack().hooks); }
void set_saved_hooks_error(std::optional<std::string> text) {
  hook_stack().error = text ? std::make_unique<std::string>(std::move(*text)) : nullptr;
}

void SavedTensor::save(const Tensor& t, bool is_output) {
  if (!t.defined()) return;
  STRATA_CHECK(!t.impl()->inference_,
               "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
               "in computation tracked by autograd. To work around you can make a clone to get a normal tensor and "
               "use it in autograd.");
  version_ = t.version();
  is_output_ = is_output;
  output_nr_ = t.impl()->output_nr_;
  is_leaf_ = t.is_leaf();
  requires_grad_ = t.impl()->requires_grad_;
  HookStack& stack = hook_stack();
  if (STRATA_UNLIKELY(!stack.hooks.empty())) {
    if (!is_output) grad_fn_ = t.impl()->grad_fn_;
    packed_ = packed(*stack.hooks.back(), t);
    if (is_leaf_ && !is_output) data_ = t;  // a leaf is itself: its gradient must reach it
    return;
  }
  data_ = is_output ? without_history(t) : t;
  version_ = data_.version();
}

void SavedTensor::save_geometry(const Tensor& t) {
  if (!t.defined()) return;
  const TensorImpl* i = t.impl();
  data_ = Tensor(Ref<TensorImpl>::adopt(new TensorImpl({}, i->dtype_, i->keys_ - KeySet(Key::Autograd), i->device_)));
  data_.impl()->set_geometry(i->sizes(), i->strides(), i->offset_);
  geometry_ = true;
}

Tensor SavedTensor::unpack(Node* owner, bool used) const {
  STRATA_CHECK(
      !released_,
      "Trying to backward through the graph a second time (or directly access saved tensors after they have "
      "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
      "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
      "you need to access saved tensors after calling backward.");
  if (!used && !packed_) return data_;
  if (!defined()) return {};
  Tensor t;
  if (packed_) {
    t = packed_->unpack();
    if (is_leaf_ && !is_output_) {
      if (!t.is_same(data_)) {
        t = alias_of(t);
        // Gradients that flow through the unpacked copy belong to the leaf.
        if (requires_grad_) {
          t.impl()->grad_fn_ = gradient_edge(data_).node;
          t.impl()->keys_ = t.impl()->keys_ | KeySet(Key::Autograd);
        }
      }
      return t;
    }
  } else {
    t = data_;
    uint32_t now = t.version();
    if (STRATA_UNLIKELY(now != version_)) {
      const Writes& writes = t.impl()->writes();
      throw_error(
          ErrorKind::Runtime,
          str_cat(
              "one of the variables needed for gradient computation has been modified by an inplace "
              "operation: [strata.",
              scalar_type_name(t.dtype()), "Tensor ", t.sizes(), "], which is ",
              is_output_ ? str_cat("output ", output_nr_, " of ", owner->name()) : str_cat("saved by ", owner->name()),
              ", is at version ", now, "; expected version ", version_, " instead. It was saved at ",
              source_text(owner->mark), " and written by ", writes.last_op(), " at ", source_text(writes.last_mark()),
              ". Use the value before the write, or write into a clone()."));
    }
    if (!is_output_) return t;
  }
  if (is_output_) {
    t = without_history(t);
    if (const Ref<Node> history = SavedResultOf::history_of(owner)) {
      set_history(t, history);
    } else if (is_differentiable(t.dtype()) && owner->outputs.size() > output_nr_) {
      t.impl()->grad_fn_ = Ref<NodeBase>(owner);
      t.impl()->output_nr_ = output_nr_;
      t.impl()->keys_ = t.impl()->keys_ | KeySet(Key::Autograd);
    }
  } else if (grad_fn_) {
    t = alias_of(t);
    t.impl()->grad_fn_ = grad_fn_;
    t.impl()->output_nr_ = output_nr_;
    t.impl()->keys_ = t.impl()->keys_ | KeySet(Key::Autograd);
  }
  return t;
}

void SavedTensor::pack(SavedHooks& hooks) {
  STRATA_CHECK(
      !released_,
      "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
      "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
      "through the graph a second time or if you need to access saved variables after calling backward.");
  STRATA_CHECK(
      !packed_,
      "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
      "is allowed at a time.");
  STRATA_CHECK(defined(), "Calling register_hooks on a saved tensor with value None is forbidden");
  if (!is_output_) grad_fn_ = data_.impl()->grad_fn_;
  packed_ = packed(hooks, data_);
  if (!is_leaf_ || is_output_) data_.reset();
}

void SavedTensor::release() {
  data_.reset();
  packed_.reset();
  grad_fn_.reset();
  released_ = true;
}

}  // namespace strata
