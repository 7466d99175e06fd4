// What the table lets passes assume of an operator: from its schema and OpInfo, and where they do not tell, the worst.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

// Whether a call must stay although nobody reads its results: it writes, may draw random numbers, or may raise by the
// values of tensors (they are looked at; an index is checked; an integer is divided), or may do so, since C++ alone
// says what it does (OpInfo::acts).
bool has_effect(const Operator& op);

// Whether it draws from a generator or tells its state, or may do so.
bool may_draw(const Operator& op);

// Whether the same operands give the same bits each time, in memory of their own or as a view, or the same error.
bool repeats(const Operator& op);

// Whether it makes another header over its operand's memory, of elements that the operand has. So one with the
// operand's sizes and strides is the operand. (as_strided reaches further.)
bool is_view(const Operator& op);

// Whether it makes another header, and C++ says which.
bool is_header(const Operator& op);

// Places of arguments that a call writes although its schema does not mark them (running statistics). Nothing where the
// call says that it is not training.
ArrayRef<size_t> unmarked_writes(const Node& call);

// How the results of a call, and its operands afterwards, share memory with its operands.
enum class Sharing : uint8_t {
  Marked,   // as the schema's marks say
  Unknown,  // any result with any operand; where it writes also its operands with each other, and headers may change
};
Sharing sharing(const Operator& op);

// Calls f with each value that a node writes, blocks included, and the call that does.
template <class F>
void each_written(const Node& node, F&& f) {
  if (node.kind == Node::Call) {
    const Schema& schema = node.op->schema();
    for (size_t i = 0; i < node.args.size(); ++i)
      if (schema.args[i].type.written)
        for (Id v : node.args[i].values)
          if (v != kNone) f(v, node);
    for (size_t i : unmarked_writes(node))
      for (Id v : node.args[i].values)
        if (v != kNone) f(v, node);
  }
  for (const Block& b : node.blocks)
    for (const Node& n : b.nodes) each_written(n, f);
}

// Which values may share memory, without regard to order. The inputs and captured tensors may all share theirs, if they
// are not known to lie apart.
class Memory {
 public:
  explicit Memory(const Graph& graph, bool apart = false);
  Id of(Id v) const;                                                       // one value of all that may share v's
  void join(Id a, Id b);                                                   // they may share it from now on
  bool written(Id v) const { return flags_[size_t(of(v))] & kWritten; }    // by some node
  bool reshaped(Id v) const { return flags_[size_t(of(v))] & kReshaped; }  // a header over it may change
  bool returned(Id v) const { return flags_[size_t(of(v))] & kReturned; }
  bool outside(Id v) const { return flags_[size_t(of(v))] & kOutside; }  // an input's or a captured tensor's

 private:
  enum : uint8_t { kWritten = 1, kReshaped = 2, kReturned = 4, kOutside = 8 };
  void block(const Block& b);
  void node(const Node& n);
  void call(const Node& n);
  void mark(const Block& b);
  mutable std::vector<Id> parents_;
  std::vector<uint8_t> flags_;
  const Graph& g_;
};

}  // namespace strata::ir
