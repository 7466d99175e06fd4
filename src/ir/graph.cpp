#include "ir/graph.h"

namespace strata::ir {

Type type_of(const Tensor& t) {
  Type type;
  type.dtype = t.dtype();
  type.device = t.device();
  for (int64_t n : t.sizes()) type.sizes.push_back(n);
  for (int64_t n : t.strides()) type.strides.push_back(n);
  type.number = t.impl()->wrapped_number_;
  return type;
}

namespace {

bool equal(const SmallVec<SymInt, 5>& a, IntArrayRef b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < b.size(); ++d)
    if (a[d].hint() != b[d]) return false;
  return true;
}

}  // namespace

bool fits(const Tensor& t, const Type& type) {
  return type.kind == Type::Tensor && t.defined() && t.dtype() == type.dtype && t.device() == type.device &&
         equal(type.sizes, t.sizes()) && equal(type.strides, t.strides());
}

Id Graph::add(Type type, std::string name) {
  values.push_back({std::move(type), std::move(name)});
  return Id(values.size()) - 1;
}

bool is_slot(const Type& type) {
  return type.kind == Type::Tensor && type.dtype == DType::F64 && type.sizes.empty() && type.device.is_cpu() &&
         !type.number;
}

bool has_slots(const Node& call) {
  if (call.kind != Node::Call) return false;
  const Schema& schema = call.op->schema();
  for (size_t i = 0; i < call.args.size(); ++i)
    if (call.args[i].kind == Arg::One && schema.args[i].type.base == ArgType::Float) return true;
  return false;
}

size_t count_nodes(const Block& block) {
  size_t n = block.nodes.size();
  for (const Node& node : block.nodes)
    for (const Block& b : node.blocks) n += count_nodes(b);
  return n;
}

}  // namespace strata::ir
