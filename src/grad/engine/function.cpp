#include "grad/engine/function.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "dispatch/boxed.h"
#include "grad/engine/streams.h"
#include "strata/generated/ops/create.h"

namespace strata {

const char* function_node_name(const std::type_info& function) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(function.name(), nullptr, nullptr, &status),
                                              std::free);
  std::string name = status == 0 ? text.get() : function.name();
  return lasting_text(name.substr(name.rfind(':') + 1) + "Backward");  // npos + 1 is 0
}

Tensor zero_gradient(const OutputMeta& output) {
  if (!output.meta) return ops::zeros(output.sizes, output.dtype, output.device);
  MetaGuard meta;
  return ops::zeros(output.sizes, output.dtype, output.device);
}

Tensor take_output(const Ref<Node>& node, Tensor t, const OutputUse& use) {
  GradientNote own(GradientNote::Given);
  if (use.no_gradient || !is_differentiable(t.dtype())) {
    // An input that is returned unchanged, or a tensor with a history of its own, is shown by an alias without one.
    if (!use.dirty && (use.input || needs_grad(t))) t = recorded_alias(t);
    node->outputs.push_back(OutputMeta(t));
    note_stream(*node, t);
  } else if (use.dirty) {
    STRATA_CHECK(use.input, use.saved_name, ": mark_dirty: output ", node->outputs.size(),
                 " is not an input of forward");
    check_inplace(t, use.saved_name);
    t.bump_version(use.saved_name);  // forward may have written behind the operators' back
    rebase_history(t, node);
  } else {
    // A view made inside forward must not take its history from its base, but from this function.
    const Tensor made = t;
    if (use.input || t.is_view() || needs_grad(t)) t = recorded_alias(t);
    if (use.input || made.is_view()) mark_function_view(t, made);
    set_history(t, node);
  }
  return t;
}

std::vector<Tensor> FunctionContext::saved_tensors() const {
  std::vector<Tensor> out;
  for (const SavedTensor& t : saved_) out.push_back(t.unpack(node_));
  return out;
}

FunctionNode::FunctionNode(const char* name, FunctionBackward backward) : name_(name), backward_(backward) {
  context.node_ = this;
}

void FunctionNode::take_argument(const Tensor* t) {
  const bool tensor = t && t->defined(), need = tensor && t->requires_grad();
  input_is_tensor_.push_back(tensor);
  context.needs_.push_back(need);
  if (!tensor) return;
  inputs_.push_back(t->impl());
  record_ |= need && grad_enabled();
  if (grad_enabled()) add_edge(*t);
}

std::vector<Tensor> FunctionNode::finish(std::vector<Tensor> results) {
  const Ref<Node> self(this);
  for (Tensor& t : results) {
    STRATA_CHECK(t.defined(), name_, ": forward returned an undefined tensor as output ", outputs.size());
    const bool input = std::find(inputs_.begin(), inputs_.end(), t.impl()) != inputs_.end();
    const bool dirty = std::erase(context.dirty_, t.impl()) > 0;
    const bool fixed = std::find(context.fixed_.begin(), context.fixed_.end(), t.impl()) != context.fixed_.end();
    t = take_output(self, t, {input, dirty, !record_ || fixed, name_});
  }
  STRATA_CHECK(context.dirty_.empty(), name_,
               ": Some elements marked as dirty during the forward method were not returned as output. The inputs that "
               "are modified inplace must all be outputs of the Function.");
  if (record_) context.saved_.reserve(context.to_save_.size());
  if (record_)
    for (const Tensor& t : context.to_save_)
      context.saved_.push_back(t.defined() ? SavedTensor(t, t.impl()->grad_fn_.get() == static_cast<NodeBase*>(this))
                                           : SavedTensor());
  context.to_save_.clear();
  context.fixed_.clear();
  inputs_.clear();
  return results;
}

void FunctionNode::release_saved() {
  for (SavedTensor& t : context.saved_) t.release();
}

Grads FunctionNode::apply(Grads&& grads) {
  std::vector<Tensor> given(outputs.size());
  for (size_t i = 0; i < given.size(); ++i) {
    if (i < grads.size()) given[i] = grads[i];
    if (!given[i].defined() && context.materialize_) given[i] = zero_gradient(outputs[i]);
  }
  grads.resize(0);
  std::vector<Tensor> found = backward_(context, given);
  while (found.size() > input_is_tensor_.size() && !found.back().defined()) found.pop_back();
  STRATA_CHECK(found.size() == input_is_tensor_.size(), "function ", name_,
               " returned an incorrect number of gradients (expected ", input_is_tensor_.size(), ", got ", found.size(),
               ")");
  Grads out;
  for (size_t i = 0; i < found.size(); ++i) {
    if (input_is_tensor_[i])
      out.push_back(std::move(found[i]));
    else
      STRATA_CHECK(!found[i].defined(), "function ", name_, " returned a gradient different than None at position ",
                   i + 1, ", but the corresponding forward input was not a Tensor");
  }
  return out;
}

}  // namespace strata
