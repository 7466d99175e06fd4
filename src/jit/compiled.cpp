#include "jit/compiled.h"

#include <algorithm>

#include "dispatch/seen.h"
#include "grad/function.h"
#include "ir/rewrite.h"
#include "jit/joint/split.h"
#include "run/copy.h"

namespace strata::jit {

Compiled::Compiled(Captured captured) : captured_(std::move(captured)) {
  // The forward alone: nodes of the backward and tangents left out.
  forward_ = captured_.graph;
  forward_.body.nodes.resize(std::min(captured_.forward_nodes, forward_.body.nodes.size()));
  forward_.body.results.resize(captured_.outputs);
  auto& params = forward_.body.params;
  const auto first = params.begin() + int64_t(inputs());
  params.erase(first, first + int64_t(captured_.tangent_of.size()));
}

const Plan& Compiled::inference() {
  std::lock_guard<std::mutex> hold(lock_);
  if (!inference_) inference_ = std::make_unique<Plan>(forward_);
  return *inference_;
}

void Compiled::make_training() {
  std::lock_guard<std::mutex> hold(lock_);
  if (training_ || captured_.tangent_of.empty()) return;
  Halves h = split(captured_.graph, captured_.forward_nodes, captured_.tangent_of.size(), captured_.outputs);
  saved_param_ = h.saved_param;
  backward_ = std::make_unique<Plan>(std::move(h.backward));
  training_ = std::make_unique<Plan>(std::move(h.forward));
}

const Plan* Compiled::training() { return make_training(), training_.get(); }
const Plan* Compiled::backward() { return make_training(), backward_.get(); }

std::vector<std::pair<std::string, const Plan*>> Compiled::plans() {
  if (!training()) return {{"forward", &inference()}};
  return {{"forward", training_.get()}, {"backward", backward_.get()}};
}

namespace {

// What a call leaves for its backward. Saved tensors are aliases without history, whose memory's version is watched.
struct Saved {
  std::shared_ptr<Compiled> compiled;
  std::vector<Tensor> tensors;
  std::vector<uint32_t> versions;
};

}  // namespace

struct Compiled::Node {
  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
    const auto& saved = std::any_cast<const Saved&>(ctx.values.at("saved"));
    Compiled& c = *saved.compiled;
    STRATA_CHECK_NOT_IMPLEMENTED(!grad_enabled(),
                                 "graph: a second derivative of a compiled graph (create_graph=True) is not there yet; "
                                 "take it of the function itself");
    for (size_t i = 0; i < saved.tensors.size(); ++i)
      STRATA_CHECK(saved.tensors[i].version() == saved.versions[i],
                   "one of the variables needed for gradient computation has been modified by an inplace operation: a "
                   "tensor of shape ",
                   saved.tensors[i].sizes(), ", which a compiled graph saved, is at version ",
                   saved.tensors[i].version(), "; expected version ", saved.versions[i], " instead");
    std::vector<Tensor> params = saved.tensors;
    for (int output : c.captured_.tangent_of) {
      // A gradient of other strides than the one at hand when the graph was made is laid out like that.
      const ir::Type& type = c.backward_->graph().values[size_t(c.backward_->graph().body.params[params.size()])].type;
      Tensor g = grads[size_t(output)];
      if (!ir::fits(g, type)) {
        Tensor laid = make_tensor_strided(ir::numbers(type.sizes), ir::numbers(type.strides), type.dtype, type.device);
        eager::copy_values(laid, g);
        g = laid;
      }
      params.push_back(g);
    }
    const std::vector<Tensor> made = c.backward_->run(params);
    std::vector<Tensor> out(c.inputs() + c.captured_.graph.captured.size());
    for (size_t k = 0; k < made.size(); ++k) out[size_t(c.captured_.wanted[k])] = made[k];
    return out;
  }
};

std::vector<Tensor> Compiled::call(TensorList given) {
  std::vector<Tensor> params(given.begin(), given.end());
  params.insert(params.end(), forward_.captured.begin(), forward_.captured.end());
  ir::check_inputs(forward_, given);
  STRATA_CHECK(default_dtype() == captured_.dtype, "graph: the default dtype was ", captured_.dtype,
               " when the graph was captured, and is ", default_dtype(), "; capture it again");
  const AutocastState now = autocast_state(0), then = captured_.autocast;
  STRATA_CHECK(now.enabled == then.enabled && (!now.enabled || now.dtype == then.dtype), "graph: autocast was ",
               then.enabled ? "on" : "off", " when the graph was captured, and is ",
               now.enabled ? str_cat("on, to ", now.dtype) : std::string("off"), "; capture it again");
  bool shapes = false;
  for (const Tensor& t : params) {
    t.check_memory();
    shapes |= t.is_meta();
  }
  // Where a graph is being captured, this one becomes part of it, operator by operator.
  if (recording_here() || shapes || MetaGuard::active()) return ir::Interpreter(forward_).run(params);
  const bool grads = !captured_.step && grad_enabled() &&
                     std::any_of(params.begin(), params.end(), [](const Tensor& t) { return needs_grad(t); });
  if (!grads) return inference().run(params);
  for (size_t i = 0; i < params.size(); ++i)
    STRATA_CHECK(!needs_grad(params[i]) ||
                     std::find(captured_.wanted.begin(), captured_.wanted.end(), int(i)) != captured_.wanted.end() ||
                     captured_.outputs == 0,
                 "graph: input ", i,
                 " requires a gradient, and did not when the graph was captured; capture it again, or "
                 "call it under no_grad()");
  make_training();
  if (!training_) return inference().run(params);  // no result hangs on what requires one
  for (int w : training_->written())
    STRATA_CHECK_NOT_IMPLEMENTED(!needs_grad(params[size_t(w)]), "graph: input ", w,
                                 " is written in place and requires a gradient: its history cannot be kept; write a "
                                 "copy of it");
  Ref<FunctionNode> node = make_node<FunctionNode>(typeid(Compiled), &Node::backward);
  for (const Tensor& t : params) node->take_argument(&t);
  std::vector<Tensor> results;
  {
    GradModeGuard off(false);
    results = training_->run(params);
  }
  Saved saved{shared_from_this(), {}, {}};
  for (size_t i = captured_.outputs; i < results.size(); ++i) {
    const int param = saved_param_[i - captured_.outputs];
    const Tensor& t = param < 0 ? results[i] : params[size_t(param)];
    saved.tensors.push_back(t.alias(t.sizes(), t.strides(), t.storage_offset()));
    saved.versions.push_back(t.version());
  }
  results.resize(captured_.outputs);
  std::vector<Tensor> fixed;
  for (size_t i = 0; i < results.size(); ++i)
    if (std::find(captured_.tangent_of.begin(), captured_.tangent_of.end(), int(i)) == captured_.tangent_of.end())
      fixed.push_back(results[i]);
  node->context.mark_non_differentiable(fixed);
  node->context.values["saved"] = std::move(saved);
  return node->finish(std::move(results));
}

}  // namespace strata::jit
