#include "grad/engine/engine.h"

#include <algorithm>
#include <queue>

#include "core/promote.h"
#include "dispatch/seen.h"
#include "dispatch/tls.h"
#include "grad/engine/node_map.h"
#include "grad/engine/streams.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata {

std::atomic<const NodeObserver*> node_observer{nullptr};

namespace {

// Which gradients of a node are wanted by the caller.
struct Capture {
  Node* node;
  uint32_t input_nr;
  size_t result;
};

class BackwardRun {
 public:
  BackwardRun(const BackwardOptions& options, const std::vector<Edge>& inputs) : options_(options) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].valid()) captures_.push_back({inputs[i].node.get(), inputs[i].input_nr, i});
    results_.resize(inputs.size());
    selective_ = !inputs.empty();
  }

  std::vector<Tensor> run(const std::vector<Edge>& roots, std::vector<Tensor> grads);
  bool wants(Node* node) {
    const NodeState* s = selective_ ? states_.find(node) : nullptr;
    return !s || s->needed;
  }
  bool waits(const Edge& edge) {
    const NodeState* s = states_.find(edge.node.get());
    return s && edge.input_nr < s->buffer.size() && s->buffer[edge.input_nr].defined();
  }
  void give(const Edge& edge, Tensor grad, Node* from, size_t index);
  std::vector<std::function<void()>> callbacks;

 private:
  // Nodes made later run earlier; accumulators as soon as they can.
  struct Later {
    BackwardRun* run;
    bool operator()(int32_t a, int32_t b) const { return run->priority(a) < run->priority(b); }
  };
  uint64_t priority(int32_t i) {
    Node* node = states_[i].node;
    return node->is_accumulator() ? UINT64_MAX : node->sequence_nr;
  }
  void count_dependencies(const std::vector<Edge>& roots);
  void mark_needed(const std::vector<int32_t>& order);
  void execute(NodeState& state);
  void check_grad(Tensor& grad, const OutputMeta& meta, Node* from, size_t index);
  void push(int32_t i) {
    ready_.push_back(i);
    std::push_heap(ready_.begin(), ready_.end(), Later{this});
  }
  void use_stream(Device device, int stream);
  void join_streams();

  BackwardOptions options_;
  std::vector<Capture> captures_;
  std::vector<Tensor> results_;
  bool selective_;
  NodeMap states_;
  std::vector<int32_t> ready_;
  // Queues of devices that the run has used, beside the caller's.
  struct Used {
    Device device;
    int caller;
    std::vector<int> others;
  };
  std::vector<Used> used_;
  std::vector<bool> runs_;  // by state: whether apply is wanted, when only some inputs are
  bool fresh_ = false;
};

thread_local BackwardRun* current_run = nullptr;
thread_local Node* running_node = nullptr;

// Every node reachable from the roots is found once; `dependencies` counts the edges that lead to it.
void BackwardRun::count_dependencies(const std::vector<Edge>& roots) {
  std::vector<int32_t> todo, order;
  bool fresh;
  for (const Edge& root : roots) {
    int32_t i = states_.index(root.node.get(), &fresh);
    if (fresh) todo.push_back(i);
  }
  while (!todo.empty()) {
    int32_t i = todo.back();
    todo.pop_back();
    order.push_back(i);
    Node* node = states_[i].node;
    for (const Edge& e : node->edges) {
      if (!e.valid()) continue;
      int32_t next = states_.index(e.node.get(), &fresh);
      ++states_[next].dependencies;
      if (fresh) todo.push_back(next);
    }
  }
  if (selective_) mark_needed(order);
}

// A node is needed when an input that is asked for can be reached from it. Children are finished before parents in the
// reverse of a topological order, found here by counting dependencies down.
void BackwardRun::mark_needed(const std::vector<int32_t>& order) {
  std::vector<int32_t> left(states_.size()), topological, todo;
  for (size_t i = 0; i < states_.size(); ++i) {
    left[i] = states_[int32_t(i)].dependencies;
    states_[int32_t(i)].needed = false;
  }
  for (int32_t i : order)
    if (left[i] == 0) todo.push_back(i);
  bool fresh;
  while (!todo.empty()) {
    int32_t i = todo.back();
    todo.pop_back();
    topological.push_back(i);
    for (const Edge& e : states_[i].node->edges)
      if (e.valid()) {
        int32_t next = states_.index(e.node.get(), &fresh);
        if (--left[next] == 0) todo.push_back(next);
      }
  }
  for (const Capture& c : captures_)
    if (NodeState* s = states_.find(c.node)) {
      s->has_captures = true;
      s->needed = true;
    }
  std::vector<bool> runs(states_.size(), false);
  for (size_t k = topological.size(); k-- > 0;) {
    NodeState& s = states_[topological[k]];
    bool below = false;
    for (const Edge& e : s.node->edges)
      if (e.valid()) below |= states_.find(e.node.get())->needed;
    if (below) s.needed = true;
    runs[topological[k]] = below;
  }
  runs_ = std::move(runs);
}

void BackwardRun::check_grad(Tensor& grad, const OutputMeta& meta, Node* from, size_t index) {
  if (STRATA_LIKELY(grad.sizes() == IntArrayRef(meta.sizes) && grad.dtype() == meta.dtype &&
                    grad.device() == meta.device))
    return;
  if (!(grad.sizes() == IntArrayRef(meta.sizes))) {
    bool fits = grad.dim() >= int64_t(meta.sizes.size());
    size_t lead = fits ? grad.dim() - meta.sizes.size() : 0;
    for (size_t d = 0; fits && d < meta.sizes.size(); ++d)
      fits = meta.sizes[d] == 1 || meta.sizes[d] == grad.sizes()[lead + d];
    STRATA_CHECK(fits, "Function ", from ? from->name() : "backward", " returned an invalid gradient at index ", index,
                 " - got ", grad.sizes(), " but expected shape compatible with ", meta.sizes);
    grad = ops::sum_to_size(grad, meta.sizes);
  }
  if (grad.dtype() != meta.dtype) {
    if (grad.is_complex() && !is_complex(meta.dtype)) grad = ops::real(grad);
    if (grad.dtype() != meta.dtype) grad = ops::to(grad, meta.dtype);
  }
  // Of a copy, or of a number on the CPU that an operator of a device took.
  if (!(grad.device() == meta.device)) grad = ops::_to_copy(grad, std::nullopt, meta.device);
}

// Note [Streams of a backward run].
void BackwardRun::use_stream(Device device, int stream) {
  auto at = std::find_if(used_.begin(), used_.end(), [&](const Used& u) { return u.device == device; });
  if (at == used_.end()) at = used_.insert(at, Used{device, current_stream(device), {}});
  if (stream == at->caller || std::find(at->others.begin(), at->others.end(), stream) != at->others.end()) return;
  wait_stream(device, stream, at->caller);
  at->others.push_back(stream);
}

void BackwardRun::join_streams() {
  for (const Used& u : used_)
    for (int stream : u.others) wait_stream(u.device, u.caller, stream);
}

void BackwardRun::give(const Edge& edge, Tensor grad, Node* from, size_t index) {
  NodeState& next = states_[states_.index(edge.node.get(), &fresh_)];
  if (selective_ && !next.needed) return;
  if (grad.defined()) {
    Node* node = edge.node.get();
    std::optional<StreamGuard> queue;
    if (STRATA_UNLIKELY(grad.device().type > 1)) {
      const Device device = grad.device();
      const int there = stream_of(*node), here = current_stream(device);
      use_stream(device, there);
      if (there != here) wait_stream(device, there, here);
      queue.emplace(device, there);
    }
    if (next.buffer.size() < node->outputs.size()) next.buffer.resize(node->outputs.size());
    STRATA_INTERNAL(edge.input_nr < next.buffer.size(), "edge to output ", edge.input_nr, " of ", node->name());
    check_grad(grad, node->outputs[edge.input_nr], from, index);
    Tensor& slot = next.buffer[edge.input_nr];
    if (!slot.defined()) {
      slot = std::move(grad);
      return;
    }
    const GradientNote sum(next.has_captures ? GradientNote::Total : GradientNote::Sum);
    // Of a wrapper of another tensor these counts tell nothing.
    const bool wraps = (slot.keys() | grad.keys()).has(Key::Python);
    if (!options_.create_graph && !wraps && slot.impl()->use_count() == 1 && slot.storage()->use_count() == 1 &&
        !slot.storage()->read_only() && !overlaps_itself(slot) && slot.device() == grad.device())
      ops::add_(slot, grad);
    else
      slot = ops::add(slot, grad);
  }
}

// What a hook put in the place of a gradient must be like it.
void check_hooked(const Tensor& before, const Tensor& after) {
  if (!after.defined() || after.is_same(before)) return;
  STRATA_CHECK(before.defined(), "hook: can't replace a None gradient with a non-None value");
  STRATA_CHECK(after.dtype() == before.dtype() && after.device() == before.device(),
               "hook: a hook has changed the type of value (was ", before.dtype(), " on ", before.device(), ", got ",
               after.dtype(), " on ", after.device(), "): return a tensor like the gradient that it is given");
  STRATA_CHECK(after.sizes() == before.sizes(), "hook: a hook has changed the size of value (was ", before.sizes(),
               ", got ", after.sizes(), "): return a tensor like the gradient that it is given");
}

void check_hooked(const Grads& before, const Grads& after) {
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) check_hooked(before[i], after[i]);
}

// Of all hooks those run that are there at the start: one may remove itself, or add others for the next time.
void run_tensor_hooks(Node& node, Grads& grads) {
  const GradientNote own(GradientNote::Back);
  const std::vector<TensorHook> hooks = node.hooks()->tensor.now();
  for (int pass = 0; pass < 2; ++pass)
    for (const TensorHook& hook : hooks) {
      if (hook.retains_grad != (pass == 1) || hook.output_nr >= grads.size() || !grads[hook.output_nr].defined())
        continue;
      Tensor changed = hook.fn(grads[hook.output_nr]);
      check_hooked(grads[hook.output_nr], changed);
      if (changed.defined()) grads[hook.output_nr] = changed;
    }
}

void run_pre_hooks(Node& node, Grads& grads) {
  const GradientNote own(GradientNote::Back);
  for (const NodePreHook& hook : node.hooks()->pre.now()) {
    Grads changed = hook.fn(grads);
    if (changed.empty()) continue;
    check_hooked(grads, changed);
    grads = changed;
  }
}

void check_nan(Node& node, const Grads& grads) {
  GradModeGuard off(false);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !is_differentiable(grads[i].dtype())) continue;
    if (ops::item(ops::any(ops::isnan(grads[i]))).to_bool())
      throw_error(ErrorKind::Runtime, str_cat("Function '", node.name(), "' returned nan values in its ", i,
                                              "th output. The forward call was at ", source_text(node.mark),
                                              node.forward_trace.empty() ? "" : ":\n", node.forward_trace));
  }
}

// Whether gradients stand for others, which subclasses of Python compute with. What a derivative makes anew has a shape
// alone where the result has, but not then.
static bool holds_others(const Grads& grads) {
  for (const Tensor& g : grads)
    if (g.defined() && g.keys().has(Key::Python)) return true;
  return false;
}

void BackwardRun::execute(NodeState& state) {
  Node* node = state.node;
  std::optional<StreamGuard> queue;
  if (!node->outputs.empty() && STRATA_UNLIKELY(node->outputs[0].device.type > 1)) {
    const Device device = node->outputs[0].device;
    use_stream(device, stream_of(*node));
    queue.emplace(device, stream_of(*node));
  }
  Grads grads = std::move(state.buffer);
  grads.resize(std::max(node->outputs.size(), size_t(1)));
  const bool runs = !selective_ || (node->is_accumulator() ? options_.accumulate : runs_[size_t(&state - &states_[0])]);
  // As in PyTorch, what is captured where the node runs is what came in, and what hooks of the tensor made of it where
  // it does not.
  auto capture = [&] {
    if (!state.has_captures) return;
    for (const Capture& c : captures_)
      if (c.node == node && c.input_nr < grads.size()) results_[c.result] = grads[c.input_nr];
  };
  if (!runs && !options_.input_hooks) return capture();
  if (runs) capture();
  if (STRATA_UNLIKELY(node->hooks() != nullptr)) run_tensor_hooks(*node, grads);
  if (!runs) return capture();
  if (STRATA_UNLIKELY(node->hooks() != nullptr)) run_pre_hooks(*node, grads);
  const NodeObserver* observer = node_observer.load(std::memory_order_relaxed);
  Node* outer = running_node;
  running_node = node;
  if (STRATA_UNLIKELY(observer != nullptr)) observer->begin(*node);
  Grads out;
  Grads given;
  bool post = node->hooks() && !node->hooks()->post.empty();
  if (STRATA_UNLIKELY(post)) given = grads;
  std::optional<MetaGuard> shape_only;
  if (STRATA_UNLIKELY(!node->outputs.empty() && node->outputs[0].meta) && !holds_others(grads)) shape_only.emplace();
  try {
    out = node->apply(std::move(grads));
  } catch (const Error&) {
    running_node = outer;
    if (observer) observer->end(*node);
    if (!node->forward_trace.empty())
      warn(str_cat("Error detected in ", node->name(), ". Traceback of forward call that caused the error:\n",
                   node->forward_trace));
    throw;
  } catch (...) {
    running_node = outer;
    if (observer) observer->end(*node);
    throw;
  }
  shape_only.reset();
  if (STRATA_UNLIKELY(observer != nullptr)) observer->end(*node);
  running_node = outer;
  STRATA_CHECK(out.size() <= node->edges.size() || node->edges.empty(), "Function ", node->name(),
               " returned an incorrect number of gradients (expected ", node->edges.size(), ", got ", out.size(), ")");
  if (STRATA_UNLIKELY(post)) {
    const GradientNote own(GradientNote::Back);
    for (const NodePostHook& hook : node->hooks()->post.now()) {
      Grads changed = hook.fn(out, given);
      if (changed.empty()) continue;
      check_hooked(out, changed);
      out = changed;
    }
  }
  if (STRATA_UNLIKELY(anomaly_enabled()) && anomaly_checks_nan()) check_nan(*node, out);
  if (!options_.keep_graph) node->release_saved();
  for (size_t i = 0; i < node->edges.size(); ++i) {
    const Edge& e = node->edges[i];
    if (!e.valid()) continue;
    give(e, i < out.size() ? std::move(out[i]) : Tensor(), node, i);
    int32_t next = states_.index(e.node.get(), &fresh_);
    if (--states_[next].dependencies == 0) push(next);
  }
}

std::vector<Tensor> BackwardRun::run(const std::vector<Edge>& roots, std::vector<Tensor> grads) {
  const GradientNote theirs(GradientNote::Theirs);  // also inside of a backward that somebody wrote
  count_dependencies(roots);
  std::vector<Ref<Node>> keep;
  for (size_t i = 0; i < roots.size(); ++i) {
    keep.push_back(roots[i].node);
    give(roots[i], std::move(grads[i]), nullptr, i);
    int32_t at = states_.index(roots[i].node.get(), &fresh_);
    if (states_[at].dependencies == 0 && std::find(ready_.begin(), ready_.end(), at) == ready_.end()) push(at);
  }
  BackwardRun* outer = current_run;
  current_run = this;
  std::optional<SelectiveRun> selective;
  if (selective_) selective.emplace();
  GradModeGuard mode(options_.create_graph);
  try {
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), Later{this});
      int32_t at = ready_.back();
      ready_.pop_back();
      NodeState& state = states_[at];
      if (selective_ && !state.needed) {
        // Nothing below is asked for, but its dependants must still be counted down.
        for (const Edge& e : state.node->edges)
          if (e.valid()) {
            int32_t next = states_.index(e.node.get(), &fresh_);
            if (--states_[next].dependencies == 0) push(next);
          }
        continue;
      }
      execute(state);
    }
    join_streams();
    // One may queue others.
    for (size_t i = 0; i < callbacks.size(); ++i) std::exchange(callbacks[i], {})();
  } catch (...) {
    current_run = outer;
    join_streams();
    throw;
  }
  current_run = outer;
  return std::move(results_);
}

}  // namespace

std::atomic<int> Node::selective_runs{0};

bool Node::wanted(const Edge& edge) { return !current_run || current_run->wants(edge.node.get()); }

Node* current_node() { return running_node; }

bool gradient_waits(size_t index) {
  if (!current_run || !running_node || index >= running_node->edges.size()) return false;
  const Edge& edge = running_node->edges[index];
  return edge.valid() && current_run->waits(edge);
}

void give_gradient(size_t index, Tensor grad) {
  STRATA_INTERNAL(current_run && running_node && index < running_node->edges.size(), "a gradient outside of a node");
  current_run->give(running_node->edges[index], std::move(grad), running_node, index);
}

void queue_backward_callback(std::function<void()> callback) {
  STRATA_CHECK(current_run, "Final callbacks can only be installed during backward pass.");
  current_run->callbacks.push_back(std::move(callback));
}

std::vector<Tensor> run_backward(const std::vector<Edge>& roots, std::vector<Tensor> grads,
                                 const std::vector<Edge>& inputs, const BackwardOptions& options) {
  ExcludeGuard plain{KeySet(Key::Autocast)};
  return BackwardRun(options, inputs).run(roots, std::move(grads));
}

namespace {

std::vector<Edge> root_edges(TensorList tensors, TensorList grads, std::vector<Tensor>& given) {
  std::vector<Edge> roots;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    const Edge edge = t.defined() && needs_grad(t) ? gradient_edge(t) : Edge{};
    STRATA_CHECK(edge.valid(), "element ", i, " of tensors does not require grad and does not have a grad_fn");
    Tensor g = i < grads.size() ? grads[i] : Tensor();
    if (!g.defined()) {
      STRATA_CHECK(t.numel() == 1, "grad can be implicitly created only for scalar outputs");
      STRATA_CHECK(!t.is_complex(), "grad can be implicitly created only for real scalar outputs but got ", t.dtype());
      g = ops::ones_like(ops::detach(t));
    } else {
      STRATA_CHECK(g.sizes() == t.sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of ", g.sizes(),
                   " and output[", i, "] has a shape of ", t.sizes(), ".");
      STRATA_CHECK(g.is_complex() == t.is_complex(),
                   "For complex Tensors, both grad_output and output are required to have the "
                   "same dtype. Mismatch in dtype: grad_output[",
                   i, "] has a dtype of ", g.dtype(), " and output[", i, "] has a dtype of ", t.dtype(), ".");
    }
    given.push_back(g);
    roots.push_back(edge);
  }
  return roots;
}

}  // namespace

Edge wanted_edge(const Tensor& t) {
  const Edge edge = gradient_edge(t);
  return edge.valid() ? edge : Edge{make_node<AccumulateGrad>(t), 0};
}

void backward(TensorList tensors, TensorList grads, const BackwardOptions& options, TensorList inputs) {
  std::vector<Tensor> given;
  std::vector<Edge> roots = root_edges(tensors, grads, given);
  std::vector<Edge> wanted;
  for (const Tensor& t : inputs) {
    STRATA_CHECK(needs_grad(t), "One of the differentiated Tensors does not require grad");
    retain_grad(t);
    wanted.push_back(wanted_edge(t));
  }
  run_backward(roots, given, wanted, options);
}

std::vector<Tensor> gradients(TensorList outputs, TensorList inputs, TensorList grads, const BackwardOptions& options,
                              bool allow_unused) {
  std::vector<Tensor> given;
  std::vector<Edge> roots = root_edges(outputs, grads, given);
  std::vector<Edge> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    STRATA_CHECK(inputs[i].defined() && needs_grad(inputs[i]),
                 "One of the differentiated Tensors does not require grad: the one at index ", i);
    wanted.push_back(wanted_edge(inputs[i]));
  }
  BackwardOptions o = options;
  o.accumulate = false;
  std::vector<Tensor> found = run_backward(roots, given, wanted, o);
  for (size_t i = 0; i < found.size(); ++i)
    STRATA_CHECK(found[i].defined() || allow_unused, "The differentiated Tensor at index ", i,
                 " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
  return found;
}

}  // namespace strata
