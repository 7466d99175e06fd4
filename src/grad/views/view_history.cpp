// History of views and of writes through them. A view remembers its base; when the base's storage has been written by a
// recorded operator, the view's node is made anew from the base, and a recorded write through a view gives the base a
// CopySlices node. Both show what the view does by view operators (view_path.h), or as_strided where no few of them do.
// Where one of the two is complex and the other real, both are taken as real numbers.
#include "dispatch/tls.h"
#include "grad/engine/saved_result.h"
#include "grad/engine/streams.h"
#include "grad/engine/variable.h"
#include "grad/views/view_path.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/scatter_view.h"
#include "strata/generated/ops/view.h"

namespace strata {

namespace {

Tensor as_parts(const Tensor& t) { return is_complex(t.dtype()) ? ops::view_as_real(t) : t; }

// What `view` shows of `whole`, whose memory lies as that of `base`.
Tensor shown(const Tensor& whole, const Geometry& base, const Geometry& view) {
  if (const std::optional<ViewPath> path = ViewPath::between(base, view)) return path->of(whole);
  if (base.complex == view.complex) return ops::as_strided(whole, view.sizes, view.strides, view.offset - base.offset);
  const Geometry b = base.parts(), v = view.parts();
  const Tensor real = ops::as_strided(as_parts(whole), v.sizes, v.strides, v.offset - b.offset);
  return view.complex ? ops::view_as_complex(real) : real;
}

class AsStridedBackward final : public Node {
 public:
  AsStridedBackward(const Geometry& base, const Geometry& view) : base_(base), view_(view) {}
  std::string name() const override { return "AsStridedBackward0"; }
  Grads apply(Grads&& grads) override {
    if (!grads[0].defined()) return Grads(1);
    if (const std::optional<ViewPath> path = ViewPath::between(base_, view_)) return {path->gradient(grads[0])};
    if (base_.complex == view_.complex) return {gathered(grads[0], base_, view_)};
    const Tensor real = gathered(as_parts(grads[0]), base_.parts(), view_.parts());
    return {base_.complex ? ops::view_as_complex(real) : real};
  }

 private:
  static Tensor gathered(const Tensor& grad, const Geometry& base, const Geometry& view) {
    return ops::as_strided_backward(grad, base.sizes, base.strides, base.offset, view.sizes, view.strides, view.offset);
  }
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
    Tensor slice = shown(whole, base_, view_);
    // What it saved of its result is the view of the base as it was written.
    const SavedResultOf result{fn_.get(), [this] {
                                 Ref<Node> node(make_node<AsStridedBackward>(base_, view_).get());
                                 node->edges.push_back(Edge{Ref<Node>(this), 0});
                                 return node;
                               }};
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

constexpr const char* kFunctionView =
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.";

// Before a write that is recorded.
void refuse_unfollowed(const TensorImpl* impl, std::string_view op) {
  STRATA_CHECK(!impl->unrecorded_view_, op,
               ": A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
               "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
               "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
               "tracked) or both outside (if you want the inplace to be tracked).");
  STRATA_CHECK(!impl->function_view_, op, ": Output ", impl->output_nr_, " of ",
               impl->grad_fn_ ? static_cast<Node*>(impl->grad_fn_.get())->name() : "a custom Function",
               " is a view and is being modified inplace. ", kFunctionView);
}

Tensor base_of(const Tensor& view) { return Tensor(Ref<TensorImpl>(view.impl()->base_)); }

}  // namespace

void refresh_view(const Tensor& view) {
  TensorImpl* impl = view.impl();
  TensorImpl* base = impl->base_;
  if (impl->view_version_ == impl->writes().count()) return;
  if (!base->requires_grad_ && !base->grad_fn_) return;
  STRATA_CHECK(
      !impl->unrecorded_view_,
      "A view was created in no_grad mode and its base or another view of its base has been modified inplace. "
      "Make the view again after the write, or outside of no_grad(), or detach() it where it needs no gradient.");
  // A leaf's views keep their nodes, but where it or they took other sizes unrecorded.
  if (!base->grad_fn_ && impl->grad_fn_ && !base->turned_) return;
  // Writes that were not recorded leave the node as it is.
  Node* old = static_cast<Node*>(impl->grad_fn_.get());
  Node* maker = static_cast<Node*>(base->grad_fn_.get());
  if (old && maker && (old == maker || old->sequence_nr > maker->sequence_nr)) {
    impl->view_version_ = impl->writes().count();
    return;
  }
  if (!is_differentiable(impl->dtype_)) return;
  STRATA_CHECK(!impl->function_view_, "Output ", impl->output_nr_, " of ", old ? old->name() : "a custom Function",
               " is a view and its base or another view of its base has been modified inplace. ", kFunctionView);
  Tensor base_tensor = base_of(view);
  Ref<Node> node(make_node<AsStridedBackward>(Geometry(base_tensor), Geometry(view)).get());
  node->edges.push_back(gradient_edge(base_tensor));
  set_history(view, node);
}

bool view_needs_grad(const Tensor& view) {
  refresh_view(view);
  return view.requires_grad();
}

void rebase_history(const Tensor& t, const Ref<Node>& node) {
  TensorImpl* impl = t.impl();
  if (!impl->base_) {
    set_history(t, node);
    return;
  }
  Tensor base = base_of(t);
  node->outputs.push_back(OutputMeta(t));
  note_stream(*node, t);
  Ref<Node> copy(make_node<CopySlices>(base, t, node).get());
  base.impl()->grad_fn_.reset();
  set_history(base, copy);
  // The view's own node is made from the base's new one at its next use.
  impl->grad_fn_.reset();
  impl->view_version_ = impl->writes().count() - 1;
  refresh_view(t);
}

void check_inplace(const Tensor& t, const char* op) {
  const TensorImpl* impl = t.impl();
  if (!grad_enabled()) return;
  STRATA_CHECK(!(impl->requires_grad_ && !impl->grad_fn_), op,
               ": a leaf Variable that requires grad is being used in an in-place operation.");
  const TensorImpl* base = impl->base_;
  if (!base) return;
  // The base would change while its gradient told nothing of it.
  if (impl->unrecorded_view_ ? base->requires_grad_ || base->grad_fn_ : impl->function_view_ && impl->grad_fn_)
    refuse_unfollowed(impl, op);
  // Whoever asked for the gradient, the base or a leaf that is itself a view of it, would lose it.
  STRATA_CHECK(!((t.requires_grad() || base->requires_grad_) && !base->grad_fn_), op,
               ": a view of a leaf Variable that requires grad is being used in an in-place operation.");
}

void add_written_edge(Node& node, const Tensor& t) {
  if (t.defined() && (t.impl()->unrecorded_view_ || t.impl()->function_view_)) refuse_unfollowed(t.impl(), node.name());
  node.add_edge(t);
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
  if (traits(impl->dtype_).component != traits(root->dtype_).component) return;  // the same bytes as other numbers
  root->incref();
  impl->base_ = root;
  impl->keys_ = impl->keys_ | KeySet(Key::Autograd);
  impl->view_version_ = impl->writes().count();
  if (STRATA_UNLIKELY(!grad_enabled() || base.impl()->unrecorded_view_)) impl->unrecorded_view_ = true;
  if (STRATA_UNLIKELY(base.impl()->function_view_)) impl->function_view_ = true;
}

void take_history(const Tensor& view, const Tensor& from) {
  TensorImpl *impl = view.impl(), *maker = from.impl();
  if (!maker->grad_fn_) return;
  STRATA_CHECK(impl->base_ && impl->sizes() == maker->sizes() && impl->dtype_ == maker->dtype_,
               "take_history: expected a view of the sizes and dtype of the tensor whose history it takes");
  impl->grad_fn_ = maker->grad_fn_;
  impl->output_nr_ = maker->output_nr_;
}

void mark_function_view(const Tensor& view, const Tensor& base) {
  mark_view(view, base);
  view.impl()->unrecorded_view_ = false;
  view.impl()->function_view_ = view.is_view();
}

}  // namespace strata
