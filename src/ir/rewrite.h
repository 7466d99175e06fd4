// What passes share: values that stand for others, constants as texts that tell them apart, types of new calls.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace strata::ir {

class Renaming {
 public:
  explicit Renaming(const Graph& g) : to_(g.values.size(), kNone) {}
  void replace(Id v, Id by) { at(v) = (*this)(by); }
  Id operator()(Id v) const;
  void apply(std::vector<Id>& ids) const;
  void apply(Node& n) const;  // what it reads, not what its blocks do

 private:
  Id& at(Id v);
  std::vector<Id> to_;
};

// Equal for equal constants alone: bits of numbers count, and the identity of what has no text.
std::string constant_key(const IValue& value);

// What a call would give: its results' types, from a run on tensors without memory; of those that it says to be None
// any. None where it raises, or gives something else than tensors, and None just there.
std::optional<std::vector<Type>> types_of_call(const Graph& g, const Node& call);

// The one tensor that a call gives, whose operands are these in order; below autograd. None where it raises.
std::optional<Tensor> result_of_call(const Node& call, TensorList operands);
Scalar number_in(const Tensor& t);                              // of one element
std::vector<int64_t> numbers(const SmallVec<SymInt, 5>& list);  // by their hints

}  // namespace strata::ir
