// Recording: while one lives on a thread, each operator that reaches Key::Tracer, below autograd and bookkeeping, is
// appended to a graph, and passed on with the key off, so that what it calls is not recorded again. Composite operators
// are decomposed; those with out=, whose bodies end in a copy, stay whole.
//
// A value stands for a tensor object, so writes in place and views are nodes like others, and running them gives the
// same aliases. What is not a tensor is a constant. Gradients are part of it where they were computed meanwhile.
//
// With `shapes`, operators run over shapes alone: nothing is computed, written or drawn. What autograd notes meanwhile
// of tensors that were there before (histories, gradients, versions) is taken back at the end.
//
// With `whole`, composite operators are one node each, so that a run of the graph decides anew, by the sizes that it
// meets, what they are made of; nodes say whether gradients were on. A backward that begins meanwhile may read what
// such a composite has saved inside of it, which is no value of the graph: that raises Runtime, and missed() says so.
// With `open`, composites that a backward may go through are decomposed.
//
// Blocks: what is recorded between begin_block() and end_block() becomes a block of an `if` or a `loop`. Operators run
// over shapes there, and may write nothing that was there before. What a block gives lies in memory of its own.
#pragma once
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "dispatch/boxed.h"
#include "grad/engine/node.h"
#include "grad/engine/saved_tensor.h"
#include "ir/graph.h"

namespace strata {

class Recording {
 public:
  // Raises where this thread records already.
  explicit Recording(TensorList inputs, bool shapes = false, bool whole = false, bool open = false);
  static Recording* here();  // this thread's, or null
  ~Recording();
  Recording(const Recording&) = delete;
  // One more input, before an operator uses it.
  void also(const Tensor& t) { input(t); }
  void take(const Tensor& t) { value(t); }  // from outside, if no node made it
  bool known(const Tensor& t) const { return t.defined() && values_.contains(t.impl()); }
  ir::Id number(const Tensor& t) const {
    const auto at = t.defined() ? values_.find(t.impl()) : values_.end();
    return at == values_.end() ? ir::kNone : at->second;
  }
  // Whether one that was there before got another history, or does now require a gradient, or not.
  bool rewrote_history() const;
  // Whether one that was there before is the result of an operator that a backward would go through.
  bool has_history() const;
  // Over shapes, raises Runtime where a backward from these leaves gradients beyond the tensors that were there before:
  // it would be taken back, and no run of the graph would leave them.
  void check_backward(ArrayRef<Edge> roots) const;
  // With `whole`, the same of a node where a backward ends.
  void check_accumulates(const Node& n) const;
  // Of one that lets its history go; and whether the history of a tensor leads through what such a one let go.
  void note_backward(ArrayRef<Edge> roots);
  bool is_spent(const Tensor& t) const;
  // A tensor of ones, laid out like that one or contiguous, as one more input: a gradient that a backward begins with.
  Tensor tangent(const Tensor& like, std::string name);
  // Until unbind(), float arguments of these names are slots: each run of the graph reads what these tensors hold then.
  // unbind() gives the names that there were.
  void bind(std::vector<std::pair<std::string, Tensor>> slots);
  std::vector<std::string> unbind();
  // While it is set, recorded nodes stand for this one: its line, and how gradients went.
  const ir::Node* stand_for(const ir::Node* node) { return std::exchange(stands_for_, node); }  // gives the last one
  ir::Graph finish(TensorList outputs);
  const ir::Graph& graph() const { return graph_; }  // so far
  bool made(const Tensor& t) const;                  // whether a node made it
  // `t.grad = None` was said on a thread that records; and whether it was.
  static void note_cleared(const Tensor& t);
  void begin_block();
  // Tensors of the types of these, contiguous: parameters of the open block, after the turn's number.
  std::vector<Tensor> block_params(TensorList like);
  ir::Block end_block(TensorList results);
  void drop_block();  // instead, after an error
  // The nodes of such blocks. What they give: `values`, as a run found them, or tensors of shapes alone.
  std::vector<Tensor> branch(const Tensor& pred, ir::Block yes, ir::Block no, std::vector<Tensor> values);
  // One block, whose results are whether it goes on and what it carries on.
  std::vector<Tensor> loop(const Tensor& going, TensorList carried, ir::Block body, std::vector<Tensor> values);
  std::vector<Tensor> read_by(const ir::Block& block) const;  // of what was there before
  bool whole() const { return whole_; }
  bool missed() const { return missed_; }
  bool over_shapes() const { return shapes_ || !open_.empty(); }
  bool cleared(const Tensor& t) const { return cleared_.contains(t.impl()); }

 private:
  static void call(Operator& op, Dispatch d, Stack& stack);
  void record(Operator& op, Dispatch d, Stack& stack);
  void input(const Tensor& t, std::string name = {});
  void begin_at(const Tensor& t);
  ir::Id value(const Tensor& t);
  ir::Id add(const Tensor& t);
  void let_go();
  Tensor twin(const Tensor& t);
  void lead_back(const Tensor& twin, const Tensor& t);
  void run(Operator& op, Dispatch d, Stack& stack);
  void run_over_shapes(Operator& op, Dispatch d, Stack& stack);
  void remember(const Tensor& t);
  void take_back();
  const Tensor* slot(const Argument& a, const IValue& given);
  std::vector<ir::Node>& nodes() { return open_.empty() ? graph_.body.nodes : open_.back().block.nodes; }
  bool from_outside(const Tensor& t) const;
  void check_writes(const Operator& op, const Stack& args) const;
  void make_alike(ir::Block& block, size_t result, bool contiguous);
  std::vector<Tensor> give(ir::Node node, const std::vector<ir::Type>& types, std::vector<Tensor> values);
  ir::Node::Gradient gradient_of(const Stack& args) const;

  IncludeGuard key_;
  std::optional<SavedHooksAside> without_hooks_;  // over shapes: these are for what is computed
  ir::Graph graph_;
  std::unordered_map<const TensorImpl*, ir::Id> values_;
  std::vector<Tensor> kept_;      // an address stays one tensor's, until nobody else has it
  int64_t added_ = 0, held_ = 0;  // bytes of tensors: of those since they were looked through, and of all then
  std::vector<ir::Id> captured_;
  std::unordered_set<const TensorImpl*> cleared_;
  std::unordered_set<const Node*> spent_;
  std::vector<Ref<Node>> spent_kept_;  // an address stays one node's
  const ir::Node* stands_for_ = nullptr;
  std::vector<std::pair<std::string, Tensor>> slots_;
  std::vector<std::string> used_;

  // A tensor from before as it was.
  struct Before {
    Tensor tensor, grad;
    Ref<NodeBase> grad_fn;
    uint32_t output_nr, view_version, version;
    bool requires_grad;
    TensorImpl* base;  // while its place is empty: its own reference
    bool begins;       // gradients end at it, as at a leaf
  };
  // Blocks that are not ended, and what was made in each.
  struct Open {
    ir::Block block;
    std::unordered_set<const TensorImpl*> made;
  };
  std::vector<Open> open_;
  std::unordered_set<const TensorImpl*> past_;  // made in blocks that have ended
  const bool shapes_, whole_, open_gradients_;
  bool missed_ = false;
  std::vector<Before> before_;
  std::unordered_set<const TensorImpl*> remembered_;
  std::unordered_map<const TensorImpl*, Tensor> twins_;
  // Twins, and aliases that a backward saves of a whole operator's: the tensors that they stand for, whose address
  // stays theirs.
  std::unordered_map<const TensorImpl*, Tensor> stands_in_;
  std::vector<Tensor> aliases_;
  std::vector<std::pair<Tensor, Ref<Node>>> ends_;  // twins of leaves, and where their gradients end: the leaves'
  std::unordered_map<const Storage*, Ref<Storage>> twin_storages_;
};

}  // namespace strata
