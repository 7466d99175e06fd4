#include "grad/engine/variable.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "dispatch/tls.h"
#include "grad/engine/streams.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/view.h"

namespace strata {

// Threads may meet at a leaf that they share: the first one's record stays.
AutogradMeta& autograd_meta(const Tensor& t) {
  std::atomic_ref<AutogradMetaBase*> place(t.impl()->autograd_);
  AutogradMetaBase* found = place.load(std::memory_order_acquire);
  if (STRATA_UNLIKELY(!found)) {
    auto made = std::make_unique<AutogradMeta>();
    if (place.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) found = made.release();
  }
  return *static_cast<AutogradMeta*>(found);
}

AutogradMeta* find_autograd_meta(const Tensor& t) {
  std::atomic_ref<AutogradMetaBase*> place(t.impl()->autograd_);
  return static_cast<AutogradMeta*>(place.load(std::memory_order_acquire));
}

const Ref<NodeBase>& grad_fn(const Tensor& t) {
  if (t.is_view()) refresh_view(t);
  return t.impl()->grad_fn_;
}

Edge gradient_edge(const Tensor& t) {
  TensorImpl* impl = t.impl();
  if (impl->grad_fn_) return {Ref<Node>(static_cast<Node*>(impl->grad_fn_.get())), impl->output_nr_};
  if (impl->base_ && !impl->requires_grad_) return {};
  AutogradMeta& meta = autograd_meta(t);
  std::lock_guard<std::mutex> hold(meta.lock);
  if (STRATA_UNLIKELY(impl->turned_) && meta.accumulator &&
      IntArrayRef(meta.accumulator->outputs[0].sizes) != impl->sizes())
    meta.accumulator = nullptr;
  if (meta.accumulator && meta.accumulator->try_incref()) return {Ref<Node>::adopt(meta.accumulator), 0};
  Ref<AccumulateGrad> node = make_node<AccumulateGrad>(t);
  for (TensorHook& hook : meta.pending_hooks.now()) node->make_hooks().tensor.add(std::move(hook));
  meta.accumulator = node.get();
  return {Ref<Node>(node.get()), 0};
}

void set_requires_grad(const Tensor& t, bool value) {
  STRATA_CHECK(t.is_leaf() || value,
               "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
               "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  STRATA_CHECK(!value || is_differentiable(t.dtype()),
               "only Tensors of floating point and complex dtype can require gradients");
  STRATA_CHECK(!value || !t.impl()->inference_ || dispatch_tls.inference,
               "Setting requires_grad=True on inference tensor outside InferenceMode is "
               "not allowed; clone the tensor first");
  TensorImpl* impl = t.impl();
  impl->requires_grad_ = value;
  if (value)
    impl->keys_ = impl->keys_ | KeySet(Key::Autograd);
  else if (!impl->base_)
    impl->keys_ = impl->keys_ - KeySet(Key::Autograd);
}

Tensor recorded_alias(const Tensor& t) {
  if (STRATA_LIKELY(!dispatch_tls.include.has(Key::Tracer))) return t.alias();
  ExcludeGuard plain(Key::Autograd | Key::InplaceOrView);
  return ops::detach(t);
}

Tensor grad_of(const Tensor& t) {
  AutogradMeta* meta = find_autograd_meta(t);
  if (!meta) return {};
  std::lock_guard<std::mutex> hold(meta->lock);
  return meta->retained ? *meta->retained : meta->grad;
}

void set_grad(const Tensor& t, const Tensor& grad) {
  if (grad.defined()) {
    STRATA_CHECK(!grad.is_same(t), "can't assign Variable as its own grad");
    STRATA_CHECK(grad.sizes() == t.sizes(), "assigned grad has data of a different size");
    STRATA_CHECK(grad.dtype() == t.dtype(), "assigned grad has data of a different type");
    STRATA_CHECK(grad.device() == t.device(), "assigned grad has data located on a different device");
  }
  AutogradMeta& meta = autograd_meta(t);
  Tensor old = grad;
  std::lock_guard<std::mutex> hold(meta.lock);  // dies before `old` does
  std::swap(meta.retained ? *meta.retained : meta.grad, old);
}

void set_data(const Tensor& t, const Tensor& from) {
  STRATA_CHECK(!t.requires_grad() || is_differentiable(from.dtype()),
               "data set to a tensor that requires gradients must be floating point or complex dtype");
  TensorImpl *impl = t.impl(), *other = from.impl();
  impl->take_storage(other->storage_);
  impl->dtype_ = other->dtype_;
  impl->device_ = other->device_;
  impl->keys_ = (other->keys_ - KeySet(Key::Autograd)) | (impl->keys_ & KeySet(Key::Autograd));
  impl->set_geometry(DimVec(other->sizes()), DimVec(other->strides()), other->offset_);
  // An accumulator that exists already was made for the old shape.
  if (AutogradMeta* meta = find_autograd_meta(t)) {
    std::lock_guard<std::mutex> hold(meta->lock);
    meta->accumulator = nullptr;
  }
}

namespace {
// The slot is shared, not the tensor: a node must not keep its own output alive.
TensorHook retaining(const std::shared_ptr<Tensor>& slot, uint32_t nr) {
  return {next_hook_id(), nr, true, [slot](const Tensor& grad) {
            *slot = slot->defined() ? ops::add(*slot, grad) : ops::clone(grad);  // others may hold it, too
            return Tensor();
          }};
}

// A tensor that retains its gradient was written: that of what it holds now is retained, not that of what it held.
void retain_anew(const Tensor& t, Node& node, uint32_t nr) {
  AutogradMeta* meta = find_autograd_meta(t);
  if (!meta || !meta->retained) return;
  std::lock_guard<std::mutex> hold(meta->lock);
  meta->retained = std::make_shared<Tensor>(*meta->retained);
  node.make_hooks().tensor.add(retaining(meta->retained, nr));
}
}  // namespace

void set_history(const Tensor& t, const Ref<Node>& node) {
  if (!t.defined()) {
    node->outputs.push_back(OutputMeta{});
    return;
  }
  TensorImpl* impl = t.impl();
  uint32_t nr = uint32_t(node->outputs.size());
  node->outputs.push_back(OutputMeta(t));
  note_stream(*node, t);
  if (!is_differentiable(t.dtype())) return;
  impl->grad_fn_ = node;
  impl->output_nr_ = nr;
  impl->keys_ = impl->keys_ | KeySet(Key::Autograd);
  if (impl->base_) impl->view_version_ = impl->writes().count();
  if (STRATA_UNLIKELY(impl->autograd_ != nullptr)) retain_anew(t, *node, nr);
}

AccumulateGrad::AccumulateGrad(Tensor v) : Node(SourceMark{}), variable(std::move(v)) {
  outputs.push_back(OutputMeta(variable));
  note_stream(*this, variable);
}

AccumulateGrad::~AccumulateGrad() {
  if (AutogradMeta* meta = find_autograd_meta(variable)) {
    std::lock_guard<std::mutex> hold(meta->lock);
    if (meta->accumulator == this) meta->accumulator = nullptr;
  }
}

namespace {
// Nobody else holds the tensor or its memory; a view may hold a base that nobody else knows.
bool unshared(const Tensor& t) {
  const TensorImpl* impl = t.impl();
  if (impl->storage_->read_only()) return false;
  if (impl->use_count() != 1 || impl->keys_.has(Key::Python)) return false;  // a subclass stays one by being cloned
  bool only_base = impl->base_ && impl->base_->use_count() == 1;
  return t.storage()->use_count() == 1 + int(only_base) && t.storage()->bytes() == size_t(t.nbytes());
}

// A copy with the strides of the variable where these are dense.
Tensor laid_out(const Tensor& grad, const Tensor& variable) {
  if (grad.impl()->keys_.has(Key::Python) || variable.is_contiguous() || !variable.is_non_overlapping_and_dense())
    return ops::clone(grad, MemoryFormat::Contiguous);
  if (grad.strides() == variable.strides()) return ops::clone(grad);
  const Tensor made = ops::new_empty_strided(grad, variable.sizes(), variable.strides());
  return ops::copy_(made, grad);
}
}  // namespace

Grads AccumulateGrad::apply(Grads&& grads) {
  Tensor grad = std::move(grads[0]);
  grads.resize(0);
  if (!grad.defined() || !variable.impl()->requires_grad_) return {};
  AutogradMeta& meta = autograd_meta(variable);
  {
    std::lock_guard<std::recursive_mutex> adding(meta.adding);
    const bool record = grad_enabled();
    Tensor sum;
    {
      std::lock_guard<std::mutex> hold(meta.lock);
      sum = meta.grad;
    }
    const bool first = !sum.defined();
    if (first) {
      // The gradient becomes .grad itself when nobody else can see it; else a copy does.
      const bool stolen = !record && unshared(grad) && grad.strides() == variable.strides();
      sum = stolen ? recorded_alias(grad) : laid_out(record ? grad : ops::detach(grad), variable);
    } else if (record) {
      sum = ops::add(sum, grad);
    } else {
      GradModeGuard off(false);
      ops::add_(sum, grad);
    }
    std::lock_guard<std::mutex> hold(meta.lock);
    if (first || record) std::swap(meta.grad, sum);
  }
  for (const NodePostHook& hook : meta.accumulate_hooks.now()) hook.fn({}, {variable});  // one may remove itself
  return {};
}

// ---- hooks

namespace {
// Hooks of a tensor sit on its node; those of a leaf without one wait in its meta data.
HookList<TensorHook>& hook_list(const Tensor& t, uint32_t* output_nr, Ref<Node>* keep) {
  *output_nr = t.impl()->output_nr_;
  if (grad_fn(t)) return static_cast<Node*>(t.impl()->grad_fn_.get())->make_hooks().tensor;
  *output_nr = 0;
  AutogradMeta& meta = autograd_meta(t);
  Edge edge = gradient_edge(t);
  *keep = edge.node;
  return meta.pending_hooks;
}
}  // namespace

int64_t register_tensor_hook(const Tensor& t, std::function<Tensor(const Tensor&)> fn) {
  STRATA_CHECK(needs_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  uint32_t nr;
  Ref<Node> keep;
  HookList<TensorHook>& list = hook_list(t, &nr, &keep);
  const TensorHook hook{next_hook_id(), nr, false, std::move(fn)};
  list.add(hook);
  if (keep) keep->make_hooks().tensor.add(hook);
  return hook.id;
}

void remove_tensor_hook(const Tensor& t, int64_t id) {
  if (t.impl()->grad_fn_) {
    if (Node::Hooks* hooks = static_cast<Node*>(t.impl()->grad_fn_.get())->hooks()) hooks->tensor.take(id);
    return;
  }
  AutogradMeta& meta = autograd_meta(t);
  // They die after the lock.
  std::optional<TensorHook> pending = meta.pending_hooks.take(id), own;
  std::optional<NodePostHook> post = meta.accumulate_hooks.take(id);
  std::lock_guard<std::mutex> hold(meta.lock);
  if (meta.accumulator && meta.accumulator->hooks()) own = meta.accumulator->hooks()->tensor.take(id);
}

void retain_grad(const Tensor& t) {
  STRATA_CHECK(needs_grad(t), "can't retain_grad on Tensor that has requires_grad=False");
  if (t.is_leaf()) return;
  AutogradMeta& meta = autograd_meta(t);
  if (meta.retained) return;
  meta.retained = std::make_shared<Tensor>();
  uint32_t nr;
  Ref<Node> keep;
  hook_list(t, &nr, &keep).add(retaining(meta.retained, nr));
}

int64_t register_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> fn) {
  STRATA_CHECK(
      t.is_leaf() && needs_grad(t),
      "post accumulate grad hooks cannot be registered on non-leaf tensors or tensors that do not require grad");
  AutogradMeta& meta = autograd_meta(t);
  int64_t id = next_hook_id();
  meta.accumulate_hooks.add({id, [fn = std::move(fn)](const Grads&, const Grads& outputs) {
                               fn(outputs[0]);
                               return Grads();
                             }});
  return id;
}

}  // namespace strata
