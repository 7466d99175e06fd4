// Recording: while one lives on a thread, each operator that reaches Key::Tracer, below autograd and bookkeeping, is
// appended to a graph, and passed on with the key off, so that what it calls is not recorded again. Composite operators
// are decomposed; those with out=, whose bodies end in a copy, stay whole.
//
// A value stands for a tensor object, so writes in place and views are nodes like others, and running them gives the
// same aliases. What is not a tensor is a constant. Gradients are part of it where they were computed meanwhile.
//
// With `shapes`, operators run over shapes alone: nothing is computed, written or drawn. What autograd notes meanwhile
// of tensors that were there before (histories, gradients, versions) is taken back at the end.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "dispatch/boxed.h"
#include "ir/graph.h"

namespace strata {

class Recording {
 public:
  // Raises where this thread records already.
  explicit Recording(TensorList inputs, bool shapes = false);
  ~Recording();
  Recording(const Recording&) = delete;
  // One more input, before an operator uses it.
  void also(const Tensor& t) { input(t); }
  bool known(const Tensor& t) const { return t.defined() && values_.contains(t.impl()); }
  // Whether one that was there before got another history, or does now require a gradient, or not.
  bool rewrote_history() const;
  // Whether one that was there before is the result of an operator that a backward would go through.
  bool has_history() const;
  // A tensor of ones, laid out like that one or contiguous, as one more input: a gradient that a backward begins with.
  Tensor tangent(const Tensor& like, std::string name);
  // Until unbind(), float arguments of these names are slots: each run of the graph reads what these tensors hold then.
  // unbind() gives the names that there were.
  void bind(std::vector<std::pair<std::string, Tensor>> slots);
  std::vector<std::string> unbind();
  // While it is set, recorded nodes stand for this one: its line, and how gradients went.
  void stand_for(const ir::Node* node) { stands_for_ = node; }
  ir::Graph finish(TensorList outputs);
  const ir::Graph& graph() const { return graph_; }  // so far
  bool made(const Tensor& t) const;                  // whether a node made it
  // `t.grad = None` was said on a thread that records; and whether it was.
  static void note_cleared(const Tensor& t);
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
  void run_over_shapes(Operator& op, Dispatch d, Stack& stack);
  void remember(const Tensor& t);
  void take_back();
  const Tensor* slot(const Argument& a, const IValue& given);
  ir::Node::Gradient gradient_of(const Stack& args) const;

  IncludeGuard key_;
  ir::Graph graph_;
  std::unordered_map<const TensorImpl*, ir::Id> values_;
  std::vector<Tensor> kept_;      // an address stays one tensor's, until nobody else has it
  int64_t added_ = 0, held_ = 0;  // bytes of tensors: of those since they were looked through, and of all then
  std::vector<ir::Id> captured_;
  std::unordered_set<const TensorImpl*> cleared_;
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
  const bool shapes_;
  std::vector<Before> before_;
  std::unordered_set<const TensorImpl*> remembered_;
  std::unordered_map<const TensorImpl*, Tensor> twins_;
  std::unordered_map<const Storage*, Ref<Storage>> twin_storages_;
};

}  // namespace strata
