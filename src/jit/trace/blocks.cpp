// Blocks of recordings: the functions of cond and while_loop.
#include <algorithm>

#include "dispatch/seen.h"
#include "ir/call.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "jit/trace/recorder.h"
#include "strata/generated/ops/copy.h"

namespace strata {

namespace {

ir::Type contiguous(ir::Type t) {
  int64_t step = 1;
  for (size_t d = t.sizes.size(); d-- > 0;) {
    t.strides[d] = step;
    step *= std::max<int64_t>(t.sizes[d].hint(), 1);
  }
  return t;
}

Tensor of_shape(const ir::Type& t) {
  return make_tensor_strided(ir::numbers(t.sizes), ir::numbers(t.strides), t.dtype, t.device, true);
}

}  // namespace

void Recording::begin_block() { open_.emplace_back(); }

std::vector<Tensor> Recording::block_params(TensorList like) {
  Open& open = open_.back();
  ir::Type turn;
  turn.kind = ir::Type::Int;
  open.block.params.push_back(graph_.add(turn));
  std::vector<Tensor> made;
  for (const Tensor& t : like) {
    made.push_back(of_shape(contiguous(ir::type_of(t))));
    open.block.params.push_back(add(made.back()));
  }
  return made;
}

// Whether it may lie in memory that was there before the open block.
bool Recording::from_outside(const Tensor& t) const {
  const auto& made = open_.back().made;
  const Storage* s = t.storage().get();
  for (const auto& [impl, id] : values_) {
    if (made.contains(impl)) continue;
    if (impl->storage_.get() == s) return true;
    const auto twin = twin_storages_.find(impl->storage_.get());
    if (twin != twin_storages_.end() && twin->second.get() == s) return true;
  }
  return !values_.contains(t.impl());
}

void Recording::check_writes(const Operator& op, const Stack& args) const {
  const Schema& schema = op.schema();
  for (size_t i = 0; i < args.size(); ++i) {
    if (!schema.args[i].type.written) continue;
    ir::each_tensor({args[i]}, [&](const Tensor& t) {
      STRATA_CHECK(!t.defined() || !from_outside(t), op.name, ": '", schema.args[i].name,
                   "' was made outside of the function of cond or while_loop that writes it (", source_chain(),
                   "); write a clone, and return it");
    });
  }
}

ir::Block Recording::end_block(TensorList results) {
  std::vector<Tensor> given(results.begin(), results.end());
  for (size_t i = 0; i < given.size(); ++i) {
    bool shared = from_outside(given[i]);
    const auto& params = open_.back().block.params;
    const auto at = values_.find(given[i].impl());
    if (at != values_.end()) shared |= std::find(params.begin(), params.end(), at->second) != params.end();
    for (size_t k = 0; k < i; ++k) shared |= given[k].storage().get() == given[i].storage().get();
    if (shared) given[i] = ops::clone(given[i]);
  }
  std::vector<ir::Id> ids;
  for (const Tensor& t : given) ids.push_back(value(t));
  Open open = std::move(open_.back());
  open_.pop_back();
  open.block.results = std::move(ids);
  for (const TensorImpl* t : open.made) {
    values_.erase(t);
    past_.insert(t);
  }
  return std::move(open.block);
}

void Recording::drop_block() {
  for (const TensorImpl* t : open_.back().made) {
    values_.erase(t);
    past_.insert(t);
  }
  open_.pop_back();
}

std::vector<Tensor> Recording::read_by(const ir::Block& block) const {
  std::unordered_set<ir::Id> used(block.results.begin(), block.results.end());
  for (const ir::Node& n : block.nodes) ir::each_use(n, [&](ir::Id v) { used.insert(v); });
  std::vector<Tensor> found;
  for (const Tensor& t : kept_)
    if (const auto at = values_.find(t.impl()); at != values_.end() && used.erase(at->second)) found.push_back(t);
  return found;
}

// A copy in the place of a block's result that lies otherwise in memory.
void Recording::make_alike(ir::Block& block, size_t result, bool contiguous_wanted) {
  const ir::Id v = block.results[result];
  const ir::Type type = graph_.values[size_t(v)].type, wanted = contiguous(type);
  if (!contiguous_wanted || ir::same(type, wanted)) return;
  ir::Node n;
  n.op = OperatorTable::instance().find("aten::clone");
  n.args = {ir::Arg::one(v), {ir::Arg::Constant, IValue(MemoryFormat::Contiguous), {}}};
  block.results[result] = graph_.add(wanted);
  n.results = {block.results[result]};
  block.nodes.push_back(std::move(n));
}

std::vector<Tensor> Recording::give(ir::Node node, const std::vector<ir::Type>& types, std::vector<Tensor> values) {
  std::vector<Tensor> given;
  for (size_t i = 0; i < types.size(); ++i) {
    Tensor t = over_shapes() ? of_shape(types[i]) : values[i];
    if (!over_shapes()) {
      STRATA_CHECK_VALUE(ir::fits(t, types[i]) || (t.sizes() == IntArrayRef(ir::numbers(types[i].sizes)) &&
                                                   t.dtype() == types[i].dtype && t.device() == types[i].device),
                         "record: a function of cond or while_loop gave ", ir::to_string(ir::type_of(t)),
                         " now, and over shapes ", ir::to_string(types[i]));
      const ExcludeGuard unrecorded{KeySet(Key::Tracer)};
      const ir::BelowAutograd below;
      Tensor own = make_tensor_strided(ir::numbers(types[i].sizes), ir::numbers(types[i].strides), types[i].dtype,
                                       types[i].device);
      t = ops::copy_(own, t);
    }
    node.results.push_back(add(t));
    given.push_back(std::move(t));
  }
  node.span = stands_for_ ? stands_for_->span : source_chain();
  nodes().push_back(std::move(node));
  return given;
}

std::vector<Tensor> Recording::branch(const Tensor& pred, ir::Block yes, ir::Block no, std::vector<Tensor> values) {
  STRATA_CHECK_VALUE(yes.results.size() == no.results.size(), "cond: expected as many results of both functions, got ",
                     yes.results.size(), " and ", no.results.size());
  std::vector<ir::Type> types;
  for (size_t i = 0; i < yes.results.size(); ++i) {
    auto type = [&](const ir::Block& b) -> const ir::Type& { return graph_.values[size_t(b.results[i])].type; };
    const bool alike = ir::same(type(yes), type(no));
    make_alike(yes, i, !alike);
    make_alike(no, i, !alike);
    STRATA_CHECK_VALUE(ir::same(type(yes), type(no)), "cond: expected results of one dtype, device and shape, got ",
                       ir::to_string(type(yes)), " of true_fn and ", ir::to_string(type(no)), " of false_fn as result ",
                       i);
    types.push_back(type(yes));
  }
  ir::Node n;
  n.kind = ir::Node::If;
  n.args.push_back(ir::Arg::one(value(pred)));
  n.blocks.push_back(std::move(yes));
  n.blocks.push_back(std::move(no));
  return give(std::move(n), types, std::move(values));
}

std::vector<Tensor> Recording::loop(const Tensor& going, TensorList carried, ir::Block body,
                                    std::vector<Tensor> values) {
  ir::Node n;
  n.kind = ir::Node::Loop;
  n.args.push_back({ir::Arg::Constant, IValue(std::numeric_limits<int64_t>::max()), {}});
  n.args.push_back(ir::Arg::one(value(going)));
  STRATA_CHECK_VALUE(body.results.size() == carried.size() + 1, "while_loop: expected ", carried.size(),
                     " results of body_fn, as many as it is given, got ", body.results.size() - 1);
  std::vector<ir::Type> types;
  for (size_t i = 0; i < carried.size(); ++i) {
    const ir::Type type = ir::type_of(carried[i]), wanted = contiguous(type);
    make_alike(body, i + 1, true);
    const ir::Type& made = graph_.values[size_t(body.results[i + 1])].type;
    STRATA_CHECK_VALUE(ir::same(made, wanted), "while_loop: expected body_fn to give what it is given, ",
                       ir::to_string(wanted), ", got ", ir::to_string(made), " as result ", i);
    n.args.push_back(
        ir::Arg::one(value(ir::same(type, wanted) ? carried[i] : ops::clone(carried[i], MemoryFormat::Contiguous))));
    types.push_back(wanted);
  }
  n.blocks.push_back(std::move(body));
  return give(std::move(n), types, std::move(values));
}

}  // namespace strata
