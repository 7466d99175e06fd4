#include "jit/trace/recorder.h"

#include <algorithm>
#include <mutex>

#include "core/watch.h"
#include "dispatch/host_reads.h"
#include "dispatch/seen.h"
#include "grad/engine.h"
#include "grad/variable.h"
#include "ir/call.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
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

}  // namespace

Recording::Recording(TensorList inputs) : key_(KeySet(Key::Tracer)) {
  static std::once_flag once;
  std::call_once(once, [] {
    static const BoxedKernel kernel{&Recording::call, "the recorder"};
    OperatorTable::instance().fallback(Key::Tracer, &kernel);
    set_result_hook([] { check_seen("a kernel"); });
  });
  STRATA_CHECK(!current, "record: operators are recorded on this thread already");
  for (const Tensor& t : inputs) input(t);
  current = this;
  watch_results(true);
}

Recording::~Recording() {
  if (current != this) return;
  current = nullptr;
  watch_results(false);
}

void Recording::input(const Tensor& t, std::string name) {
  STRATA_CHECK(t.defined(), "record: expected tensors as inputs, got None");
  const ir::Id v = add(t);
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
    cleared_.erase(t.impl());
    t.reset();
  }
  std::erase_if(kept_, [](const Tensor& t) { return !t.defined(); });
}

ir::Id Recording::value(const Tensor& t) {
  if (!t.defined()) return ir::kNone;
  if (auto at = values_.find(t.impl()); at != values_.end()) return at->second;
  const ir::Id v = add(t);
  if (t.impl()->wrapped_number_) {
    ir::Node number;
    number.kind = ir::Node::Constant;
    number.constant = t;
    number.args.push_back({ir::Arg::Constant, IValue(ir::number_in(t)), {}});
    number.results.push_back(v);
    graph_.body.nodes.push_back(std::move(number));
  } else {
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
  current->cleared_.insert(t.impl());
  current->kept_.push_back(t);
}

void Recording::call(Operator& op, Dispatch d, Stack& stack) {
  const bool decomposed = op.is_composite() && op.backend[d.device].empty() && !writes_out(op.schema());
  if (current) check_recordable(op, stack);
  if (decomposed) return redispatch_boxed(op, d.below(Key::Tracer), stack);
  if (current) return current->record(op, d, stack);
  ExcludeGuard below{KeySet(Key::Tracer)};
  redispatch_boxed(op, d.below(Key::Tracer), stack);
}

ir::Node::Gradient Recording::gradient_of(const Stack& args) const {
  const GradientNote::What note = GradientNote::here();
  if (note == GradientNote::Saved) return ir::Node::Saved;
  if (stands_for_) return stands_for_->gradient;
  // A backward reckons without gradients, unless they are asked for.
  if (current_node() || (note == GradientNote::Theirs && grad_enabled())) return ir::Node::Through;
  bool needed = false;
  ir::each_tensor(args, [&](const Tensor& t) { needed |= needs_grad(t); });
  return !needed ? ir::Node::Through : note == GradientNote::Given ? ir::Node::Own : ir::Node::Off;
}

void Recording::record(Operator& op, Dispatch d, Stack& stack) {
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
  {
    ExcludeGuard at_work{KeySet(Key::Tracer)};
    redispatch_boxed(op, d.below(Key::Tracer), stack);
  }
  // An operator that writes gives its operand back: a value of its own, which nobody reads, since later nodes find the
  // operand's.
  ir::each_tensor(stack, [&](const Tensor& t) {
    if (!t.defined()) return node.results.push_back(ir::kNone);
    const bool known = values_.contains(t.impl());
    node.results.push_back(known ? graph_.add(ir::type_of(t)) : add(t));
  });
  graph_.body.nodes.push_back(std::move(node));
  let_go();
}

}  // namespace strata
