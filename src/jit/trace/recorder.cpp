#include "jit/trace/recorder.h"

#include <algorithm>
#include <mutex>

#include "core/watch.h"
#include "dispatch/autocast.h"
#include "dispatch/host_reads.h"
#include "dispatch/seen.h"
#include "grad/engine/engine.h"
#include "grad/engine/variable.h"
#include "ir/call.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "jit/service/ahead.h"
#include "strata/generated/ops/copy.h"

namespace strata {

namespace {

thread_local Recording* current = nullptr;
constexpr int64_t kUnheeded = int64_t(1) << 20;  // bytes of tensors that may be dead

bool writes_out(const Schema& schema) {
  for (const Argument& a : schema.args)
    if (a.type.written && a.keyword_only) return true;
  return false;
}

bool any_requires_grad(const Stack& args) {
  bool any = false;
  ir::each_tensor(args, [&](const Tensor& t) { any |= t.defined() && t.requires_grad(); });
  return any;
}

}  // namespace

Recording* Recording::here() { return current; }

Recording::Recording(TensorList inputs, bool shapes, bool whole, bool open)
    : key_(KeySet(Key::Tracer)), shapes_(shapes), whole_(whole), open_gradients_(open) {
  static std::once_flag once;
  std::call_once(once, [] {
    static const BoxedKernel kernel{&Recording::call, "the recorder"};
    OperatorTable::instance().fallback(Key::Tracer, &kernel);
    set_result_hook([] { check_seen("a kernel"); });
  });
  STRATA_CHECK(!current, "record: operators are recorded on this thread already");
  clear_autocast_cache();  // the casts are part of it
  for (const Tensor& t : inputs) input(t);
  if (shapes_) without_hooks_.emplace();
  current = this;
  watch_results(true);
}

Recording::~Recording() {
  take_back();
  for (const auto& [twin, accumulator] : ends_) autograd_meta(twin).accumulator = nullptr;
  clear_autocast_cache();
  if (current != this) return;
  current = nullptr;
  watch_results(false);
}

void Recording::input(const Tensor& t, std::string name) {
  STRATA_CHECK(t.defined(), "record: expected tensors as inputs, got None");
  remember(t);
  begin_at(t);
  const ir::Id v = add(t);
  for (Open& o : open_) o.made.erase(t.impl());
  graph_.values[size_t(v)].name = std::move(name);
  graph_.body.params.push_back(v);
}

Tensor Recording::tangent(const Tensor& like, std::string name) {
  const ExcludeGuard unrecorded{KeySet(Key::Tracer)};
  // Gradients of a view of repeated elements differ by element.
  const Tensor made = like.is_non_overlapping_and_dense()
                          ? make_tensor_strided(like.sizes(), like.strides(), like.dtype(), like.device())
                          : make_tensor(like.sizes(), like.dtype(), like.device());
  {
    const ir::BelowAutograd below;
    ops::fill_(made, Scalar(1));
  }
  input(made, std::move(name));
  return made;
}

void Recording::bind(std::vector<std::pair<std::string, Tensor>> slots) {
  slots_ = std::move(slots);
  used_.clear();
}

std::vector<std::string> Recording::unbind() {
  slots_.clear();
  return std::exchange(used_, {});
}

const Tensor* Recording::slot(const Argument& a, const IValue& given) {
  if (a.type.base != ArgType::Float || !given.is<double>()) return nullptr;
  for (const auto& [name, tensor] : slots_)
    if (name == a.name) {
      if (std::find(used_.begin(), used_.end(), name) == used_.end()) used_.push_back(name);
      return &tensor;
    }
  return nullptr;
}

ir::Graph Recording::finish(TensorList outputs) {
  current = nullptr;
  watch_results(false);
  for (const Tensor& t : outputs) graph_.body.results.push_back(value(t));
  graph_.body.params.insert(graph_.body.params.end(), captured_.begin(), captured_.end());
#ifndef NDEBUG
  ir::verify(graph_);
#endif
  return std::move(graph_);
}

ir::Id Recording::add(const Tensor& t) {
  const ir::Id v = graph_.add(ir::type_of(t));
  values_[t.impl()] = v;
  if (!open_.empty()) open_.back().made.insert(t.impl());
  kept_.push_back(t);
  added_ += t.nbytes();
  return v;
}

// Tensors that only the recording holds can be named by nobody any more; without this a recording would need the memory
// of all that it ever made. Looked through when that may be much, beside what is alive.
void Recording::let_go() {
  if (added_ < std::max(kUnheeded, held_ / 8)) return;
  added_ = held_ = 0;
  // The last first: views hold what they are views of.
  for (size_t i = kept_.size(); i-- > 0;) {
    Tensor& t = kept_[i];
    if (t.impl()->use_count() > 1) {
      held_ += t.nbytes();
      continue;
    }
    values_.erase(t.impl());
    past_.erase(t.impl());
    for (Open& o : open_) o.made.erase(t.impl());
    cleared_.erase(t.impl());
    t.reset();
  }
  std::erase_if(kept_, [](const Tensor& t) { return !t.defined(); });
}

ir::Id Recording::value(const Tensor& t) {
  if (!t.defined()) return ir::kNone;
  if (auto at = values_.find(t.impl()); at != values_.end()) return at->second;
  // A backward reads what the forward has saved.
  if (auto at = stands_in_.find(t.impl()); at != stands_in_.end()) return value(at->second);
  STRATA_CHECK(!past_.contains(t.impl()),
               "record: a tensor that was made inside of a function of cond or while_loop is ",
               "used outside of it; return it from the function");
  if (whole_ && !open_gradients_ && current_node() && t.keys().has(Key::Meta)) {
    missed_ = true;
    STRATA_CHECK(false, current_node()->name(), ": a backward reads what a composite operator has saved inside of it");
  }
  const ir::Id v = add(t);
  if (t.impl()->wrapped_number_) {
    ir::Node number;
    number.kind = ir::Node::Constant;
    number.constant = t;
    number.args.push_back({ir::Arg::Constant, IValue(ir::number_in(t)), {}});
    number.results.push_back(v);
    nodes().push_back(std::move(number));
  } else {
    for (Open& o : open_) o.made.erase(t.impl());
    remember(t);
    captured_.push_back(v);
    graph_.captured.push_back(t);
  }
  return v;
}

bool Recording::made(const Tensor& t) const {
  const auto at = t.defined() ? values_.find(t.impl()) : values_.end();
  if (at == values_.end()) return false;
  const auto& params = graph_.body.params;
  return std::find(params.begin(), params.end(), at->second) == params.end() &&
         std::find(captured_.begin(), captured_.end(), at->second) == captured_.end();
}

void Recording::note_cleared(const Tensor& t) {
  if (!current) return;
  if (!t.keys().has(Key::Meta)) current->remember(t);
  current->cleared_.insert(t.impl());
  current->kept_.push_back(t);
}

void Recording::call(Operator& op, Dispatch d, Stack& stack) {
  const bool whole =
      current && current->whole_ && !(current->open_gradients_ && grad_enabled() && any_requires_grad(stack));
  // What has a kernel for shapes is one node, whatever its kernel for all devices is made of.
  const bool decomposed = op.is_composite() && !whole && op.backend[d.device].empty() &&
                          op.slots[int(Key::Meta)].empty() && !writes_out(op.schema());
  if (current) check_recordable(op, stack);
  if (decomposed) return redispatch_boxed(op, d.below(Key::Tracer), stack);
  if (current) return current->record(op, d, stack);
  ExcludeGuard below{KeySet(Key::Tracer)};
  redispatch_boxed(op, d.below(Key::Tracer), stack);
}

ir::Node::Gradient Recording::gradient_of(const Stack& args) const {
  if (whole_) return grad_enabled() ? ir::Node::Through : ir::Node::Off;
  const GradientNote::What note = GradientNote::here();
  if (note == GradientNote::Saved) return ir::Node::Saved;
  if (note == GradientNote::Sum) return ir::Node::Sum;
  if (note == GradientNote::Total) return ir::Node::Total;
  if (note == GradientNote::Back) return ir::Node::Own;
  if (stands_for_) return stands_for_->gradient;
  // A backward reckons without gradients, unless they are asked for.
  if (current_node() || (note == GradientNote::Theirs && grad_enabled())) return ir::Node::Through;
  return !any_requires_grad(args) ? ir::Node::Through : note == GradientNote::Given ? ir::Node::Own : ir::Node::Off;
}

void Recording::record(Operator& op, Dispatch d, Stack& stack) {
  if (whole_ && GradientNote::here() == GradientNote::Saved) {
    const Tensor saved = stack[0].get<Tensor>();
    run(op, d, stack);
    aliases_.push_back(stack[0].get<Tensor>());
    stands_in_[aliases_.back().impl()] = saved;
    return;
  }
  if (!open_.empty()) check_writes(op, stack);
  ir::Node node;
  node.op = &op;
  // What a backward does stands for the line of the forward.
  const Node* running = current_node();
  node.span = stands_for_                ? stands_for_->span
              : running && running->mark ? source_text(running->mark) + ", backward"
                                         : source_chain();
  node.gradient = gradient_of(stack);
  for (const IValue& v : stack) {
    if (v.is_tensor()) {
      node.args.push_back(ir::Arg::one(value(v.get<Tensor>())));
    } else if (v.is_tensors()) {
      node.args.push_back(ir::Arg::list({}));
      for (const Tensor& t : v.get<IValue::TensorVec>()) node.args.back().values.push_back(value(t));
    } else if (const Tensor* t = slots_.empty() ? nullptr : slot(op.schema().args[node.args.size()], v)) {
      node.args.push_back(ir::Arg::one(value(*t)));
    } else {
      node.args.push_back({ir::Arg::Constant, v, {}});
    }
  }
  run(op, d, stack);
  // An operator that writes gives its operand back: a value of its own, which nobody reads, since later nodes find the
  // operand's.
  ir::each_tensor(stack, [&](const Tensor& t) {
    if (!t.defined()) return node.results.push_back(ir::kNone);
    const bool known = values_.contains(t.impl());
    node.results.push_back(known ? graph_.add(ir::type_of(t)) : add(t));
  });
  if (over_shapes()) jit::note_ahead(graph_, node);
  nodes().push_back(std::move(node));
  let_go();
}

void Recording::run(Operator& op, Dispatch d, Stack& stack) {
  ExcludeGuard at_work{KeySet(Key::Tracer)};
  over_shapes() ? run_over_shapes(op, d.below(Key::Tracer), stack) : redispatch_boxed(op, d.below(Key::Tracer), stack);
}

// A tensor of the same memory and geometry, which has a shape alone; tensors that share memory share it there, too.
Tensor Recording::twin(const Tensor& t) {
  if (!t.defined() || t.keys().has(Key::Meta) || t.impl()->wrapped_number_) return t;
  if (const auto at = twins_.find(t.impl()); at != twins_.end()) {
    if (whole_) lead_back(at->second, t);
    return at->second;
  }
  Ref<Storage>& storage = twin_storages_[t.storage().get()];
  if (!storage) {
    const int64_t bytes = int64_t(t.storage()->bytes());
    storage = make_tensor({bytes}, DType::U8, t.device(), true).storage();
  }
  Tensor made(Ref<TensorImpl>::adopt(new TensorImpl(storage, t.dtype(), t.keys() | KeySet(Key::Meta), t.device())));
  made.impl()->set_geometry(t.sizes(), t.strides(), t.storage_offset());
  if (whole_) lead_back(made, t);
  stands_in_[made.impl()] = t;
  return twins_[t.impl()] = made;
}

// Gradients of what is computed from the twin from now on are the tensor's.
void Recording::lead_back(const Tensor& twin, const Tensor& t) {
  TensorImpl* i = twin.impl();
  const Edge edge = needs_grad(t) ? gradient_edge(t) : Edge{};
  const bool ends = edge.valid() && t.is_leaf();
  i->keys_ = edge.valid() ? i->keys_ | KeySet(Key::Autograd) : i->keys_ - KeySet(Key::Autograd);
  i->grad_fn_ = ends ? Ref<NodeBase>() : Ref<NodeBase>(edge.node);
  i->output_nr_ = ends ? 0 : edge.input_nr;
  i->requires_grad_ = ends;
  if (!ends || autograd_meta(twin).accumulator == edge.node.get()) return;
  autograd_meta(twin).accumulator = edge.node.get();
  ends_.emplace_back(twin, edge.node);
}

void Recording::run_over_shapes(Operator& op, Dispatch d, Stack& stack) {
  const MetaGuard shapes;
  std::unordered_map<const TensorImpl*, Tensor> of;
  auto placed = [&](const Tensor& t) {
    Tensor made = twin(t);
    if (!made.is_same(t)) of[made.impl()] = t;
    return made;
  };
  for (IValue& v : stack) {
    if (v.is_tensor()) {
      v = IValue(placed(v.get<Tensor>()));
    } else if (v.is_tensors()) {
      IValue::TensorVec list;
      for (const Tensor& t : v.get<IValue::TensorVec>()) list.push_back(placed(t));
      v = IValue(std::move(list));
    }
  }
  redispatch_boxed(op, d, stack);
  // What a composite has written has the history of that.
  for (const auto& [made, t] : of) {
    if (!whole_ || !made->grad_fn_ || made->grad_fn_.get() == t.impl()->grad_fn_.get()) continue;
    t.impl()->grad_fn_ = made->grad_fn_;
    t.impl()->output_nr_ = made->output_nr_;
    t.impl()->keys_ = t.impl()->keys_ | KeySet(Key::Autograd);
  }
  // What gives an operand back gives the tensor, not its twin.
  auto back = [&](const Tensor& t) {
    const auto at = t.defined() ? of.find(t.impl()) : of.end();
    return at == of.end() ? t : at->second;
  };
  for (IValue& v : stack) {
    if (v.is_tensor()) {
      v = IValue(back(v.get<Tensor>()));
    } else if (v.is_tensors()) {
      IValue::TensorVec list;
      for (const Tensor& t : v.get<IValue::TensorVec>()) list.push_back(back(t));
      v = IValue(std::move(list));
    }
  }
}

void Recording::remember(const Tensor& t) {
  if (!shapes_ || !t.defined() || !remembered_.insert(t.impl()).second) return;
  TensorImpl* i = t.impl();
  before_.push_back({t, grad_of(t), i->grad_fn_, i->output_nr_, i->view_version_, i->writes().count(),
                     bool(i->requires_grad_), nullptr, false});
  if (i->base_) remember(Tensor(Ref<TensorImpl>(i->base_)));
}

// Gradients of a recording end at its inputs: what led to them is not part of it, and may lead to other inputs.
void Recording::begin_at(const Tensor& t) {
  if (!shapes_ || t.is_leaf()) return;
  auto at = std::find_if(before_.begin(), before_.end(), [&](const Before& b) { return b.tensor.is_same(t); });
  if (at == before_.end() || at->begins) return;
  at->begins = true;
  TensorImpl* i = t.impl();
  at->base = std::exchange(i->base_, nullptr);
  i->grad_fn_ = {};
  i->output_nr_ = 0;
  i->requires_grad_ = true;
}

bool Recording::rewrote_history() const {
  for (const Before& b : before_) {
    const TensorImpl* i = b.tensor.impl();
    if (i->grad_fn_.get() != (b.begins ? nullptr : b.grad_fn.get()) ||
        i->requires_grad_ != (b.begins || b.requires_grad))
      return true;
  }
  return false;
}

bool Recording::has_history() const {
  for (const Before& b : before_)
    if (b.grad_fn) return true;
  return false;
}

namespace {
// Calls f with each node that a backward from these may come to, once; f says whether to go on behind it.
template <class F>
void each_node(ArrayRef<Edge> roots, F&& f) {
  std::unordered_set<const Node*> seen;
  std::vector<Ref<Node>> todo;
  for (const Edge& e : roots) todo.push_back(e.node);
  while (!todo.empty()) {
    const Ref<Node> n = std::move(todo.back());
    todo.pop_back();
    if (!n || !seen.insert(n.get()).second || !f(n)) continue;
    for (const Edge& e : n->edges) todo.push_back(e.node);
  }
}
}  // namespace

void Recording::check_accumulates(const Node& n) const {
  const bool theirs =
      whole_ && n.is_accumulator() && remembered_.contains(static_cast<const AccumulateGrad&>(n).variable.impl());
  STRATA_CHECK(!theirs,
               "backward: it would leave gradients in tensors that were there before, which no run of what is "
               "captured leaves there; take them with strata.autograd.grad");
}

void Recording::check_backward(ArrayRef<Edge> roots) const {
  if (whole_) each_node(roots, [&](const Ref<Node>& n) { return check_accumulates(*n), true; });
  std::unordered_set<const NodeBase*> outside;
  for (const Before& b : before_)
    if (b.grad_fn) outside.insert(b.begins ? gradient_edge(b.tensor).node.get() : b.grad_fn.get());
  if (outside.empty()) return;
  each_node(roots, [&](const Ref<Node>& n) {
    STRATA_CHECK(!outside.contains(n.get()),
                 "backward: it goes on outside of what is captured, through a tensor that operators there have made; "
                 "detach() what comes from outside, or run backward() outside");
    return true;
  });
}

void Recording::note_backward(ArrayRef<Edge> roots) {
  each_node(roots, [&](const Ref<Node>& n) {
    if (n->is_accumulator()) return false;
    if (spent_.insert(n.get()).second) spent_kept_.push_back(n);
    return true;
  });
}

bool Recording::is_spent(const Tensor& t) const {
  if (!t.defined() || !grad_fn(t)) return false;
  bool spent = false;
  each_node({gradient_edge(t)}, [&](const Ref<Node>& n) { return !(spent = spent || spent_.contains(n.get())); });
  return spent;
}

void Recording::take_back() {
  for (Before& b : before_) {
    TensorImpl* i = b.tensor.impl();
    if (b.begins) i->base_ = b.base;
    i->grad_fn_ = b.grad_fn;
    i->output_nr_ = b.output_nr;
    i->view_version_ = b.view_version;
    i->requires_grad_ = b.requires_grad;
    i->writes().restore(b.version);
    if (!grad_of(b.tensor).is_same(b.grad)) set_grad(b.tensor, b.grad);
  }
  before_.clear();
}

}  // namespace strata
