// History of views and of writes through them. A view remembers its base; when the base's storage has been written by a
// recorded operator, the view's node is made anew from the base (as_strided of it), and a recorded write through a view
// gives the base a CopySlices node.
#include "dispatch/tls.h"
#include "grad/streams.h"
#include "grad/variable.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/scatter_view.h"
#include "strata/generated/ops/view.h"

namespace strata {

namespace {

struct Geometry {
  DimVec sizes, strides;
  int64_t offset = 0;
  explicit Geometry(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}
};

class AsStridedBackward final : public Node {
 public:
  AsStridedBackward(const Tensor& base, const Tensor& view) : base_(base), view_(view) {}
  std::string name() const override { return "AsStridedBackward0"; }
  Grads apply(Grads&& grads) override {
    if (!grads[0].defined()) return Grads(1);
    return {ops::as_strided_backward(grads[0], base_.sizes, base_.strides, base_.offset, view_.sizes, view_.strides,
                                     view_.offset)};
  }

 private:
  Geometry base_, view_;
};

// Gradient of a base of which `fn` wrote the part that `view` shows.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> fn) : base_(base), view_(view), fn_(std::move(fn)) {
    edges.push_back(gradient_edge_or_none(base));
    for (size_t i = 1; i < fn_->edges.size(); ++i) edges.push_back(fn_->edges[i]);
  }
  std::string name() const override { return "CopySlices"; }
  Grads apply(Grads&& grads) override {
    Grads out(edges.size());
    if (!grads[0].defined()) return out;
    STRATA_CHECK(
        fn_, "Trying to backward through the graph a second time (the part of it that ", name(),
        " holds was freed). Specify retain_graph=True if you need to backward through the graph a second time");
    Tensor whole = ops::empty_strided(base_.sizes, base_.strides, grads[0].dtype(), grads[0].device());
    ops::copy_(whole, grads[0]);
    Tensor slice = ops::as_strided(whole, view_.sizes, view_.strides, view_.offset - base_.offset);
    Grads inner = fn_->apply({ops::clone(slice)});
    for (size_t i = 0; i < inner.size() && i < edges.size(); ++i) {
      if (!edges[i].valid()) continue;
      if (i > 0) {
        out[i] = inner[i];
      } else {
        if (inner[0].defined())
          ops::copy_(slice, inner[0]);
        else
          ops::zero_(slice);
        out[0] = whole;
      }
    }
    return out;
  }
  void each_saved(void* context, SavedVisitor visit) override {
    if (fn_) fn_->each_saved(context, visit);
  }
  void release_saved() override {
    if (fn_) fn_->release_saved();
  }

 private:
  static Edge gradient_edge_or_none(const Tensor& t) {
    return t.impl()->requires_grad_ || t.impl()->grad_fn_ ? gradient_edge(t) : Edge{};
  }
  Geometry base_, view_;
  Ref<Node> fn_;
};

Tensor base_of(const Tensor& view) { return Tensor(Ref<TensorImpl>(view.impl()->base_)); }

}  // namespace

void refresh_view(const Tensor& view) {
  TensorImpl* impl = view.impl();
  TensorImpl* base = impl->base_;
  if (!base->grad_fn_ || impl->view_version_ == impl->storage_->version()) return;
  // Writes that were not recorded leave the node as it is.
  Node* old = static_cast<Node*>(impl->grad_fn_.get());
  Node* maker = static_cast<Node*>(base->grad_fn_.get());
  if (old && old->sequence_nr > maker->sequence_nr) {
    impl->view_version_ = impl->storage_->version();
    return;
  }
  if (!is_differentiable(impl->dtype_) || impl->dtype_ != base->dtype_) return;
  Tensor base_tensor = base_of(view);
  Ref<Node> node(make_node<AsStridedBackward>(base_tensor, view).get());
  node->edges.push_back(gradient_edge(base_tensor));
  set_history(view, node);
}

void rebase_history(const Tensor& t, const Ref<Node>& node) {
  TensorImpl* impl = t.impl();
  if (!impl->base_) {
    set_history(t, node);
    return;
  }
  Tensor base = base_of(t);
  check_recorded_inplace(t, "in place");  // of a custom function, which has written already
  node->outputs.push_back(OutputMeta(t));
  note_stream(*node, t);
  Ref<Node> copy(make_node<CopySlices>(base, t, node).get());
  base.impl()->grad_fn_.reset();
  set_history(base, copy);
  // The view's own node is made from the base's new one at its next use.
  impl->grad_fn_.reset();
  impl->view_version_ = impl->storage_->version() - 1;
  refresh_view(t);
}

void check_inplace(const Tensor& t, const char* op) {
  const TensorImpl* impl = t.impl();
  if (!grad_enabled()) return;
  STRATA_CHECK(!(impl->requires_grad_ && !impl->grad_fn_), op,
               ": a leaf Variable that requires grad is being used in an in-place operation.");
  const TensorImpl* base = impl->base_;
  if (!base) return;
  // Whoever asked for the gradient, the base or a leaf that is itself a view of it, would lose it.
  STRATA_CHECK(!((t.requires_grad() || base->requires_grad_) && !base->grad_fn_), op,
               ": a view of a leaf Variable that requires grad is being used in an in-place operation.");
  // The base would change while its gradient told nothing of it.
  STRATA_CHECK(!impl->unrecorded_view_ || !base->grad_fn_, op,
               ": A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
               "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
               "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
               "tracked) or both outside (if you want the inplace to be tracked).");
}

void check_recorded_inplace(const Tensor& t, const char* op) {
  const TensorImpl* base = t.impl()->base_;
  STRATA_CHECK(!base || base->dtype_ == t.dtype(), op,
               ": an in-place operation on a view of another dtype cannot be recorded; clone the view first");
}

void refuse_out(const char* op) {
  throw_error(ErrorKind::Runtime, str_cat(op,
                                          "(): functions with out=... arguments don't support automatic "
                                          "differentiation, but one of the arguments requires grad. Call it under "
                                          "no_grad(), or without out="));
}

void mark_view(const Tensor& view, const Tensor& base) {
  TensorImpl* impl = view.impl();
  if (impl == base.impl() || impl->inference_ || impl->base_) return;
  TensorImpl* root = base.impl()->base_ ? base.impl()->base_ : base.impl();
  root->incref();
  impl->base_ = root;
  impl->keys_ = impl->keys_ | KeySet(Key::Autograd);
  impl->view_version_ = impl->storage_->version();
  if (STRATA_UNLIKELY(!grad_enabled() || base.impl()->unrecorded_view_)) impl->unrecorded_view_ = true;
}

}  // namespace strata
