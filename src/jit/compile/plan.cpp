#include "jit/compile/plan.h"

#include <algorithm>
#include <chrono>

#include "core/promote.h"
#include "ir/effect.h"
#include "run/isa.h"
#include "run/kernels.h"
#include "run/loop/cast.h"
#include "run/loop/rows_loop.h"

namespace strata::jit {

namespace {

constexpr int64_t kAlign = 64, kAlignElsewhere = 256;  // what devices read at once

// The operands of a fused kernel, outputs first.
std::vector<const FusedOperand*> operands_of(const Fused& f) {
  std::vector<const FusedOperand*> all;
  for (const auto* list : {&f.outs, &f.ins})
    for (const FusedOperand& o : *list) all.push_back(&o);
  return all;
}

// Calls fn(block) for what a group reads and writes in memory.
template <class F>
void each_block(const LaunchList& list, const Group& g, F&& fn) {
  if (g.fused) {
    for (const FusedOperand* o : operands_of(*g.fused))
      if (!o->made_by) fn(o->memory.block);
    for (int i : g.launches)
      if (const Launch& l = list.launches[size_t(i)]; l.kind == Launch::Space)
        for (const Operand& o : l.ins) fn(o.block);
    return;
  }
  for (int i : g.launches)
    for (const auto* operands : {&list.launches[size_t(i)].outs, &list.launches[size_t(i)].ins})
      for (const Operand& o : *operands)
        if (o.block >= 0) fn(o.block);
}

// A node whose places count from the beginning of a storage, of which an input is a part that calls choose; or null.
const ir::Node* placed_in_storage(const ir::Graph& graph) {
  const auto places = [](const ir::Node& n) {
    return n.kind == ir::Node::Call && n.op->name == "aten::as_strided" && n.args.size() > 3 &&
           !(n.args[3].kind == ir::Arg::Constant && n.args[3].constant.is_none());
  };
  const auto& nodes = graph.body.nodes;
  auto at = std::find_if(nodes.begin(), nodes.end(), places);
  if (at == nodes.end()) return nullptr;
  const ir::Memory memory(graph);
  for (; at != nodes.end(); ++at)
    if (places(*at) && memory.outside(at->args[0].values[0])) return &*at;
  return nullptr;
}

}  // namespace

// Notes how long each stage of the making took.
class Plan::Clock {
 public:
  explicit Clock(Plan& plan) : plan_(plan) {}
  void stage(const char* name) {
    const auto now = std::chrono::steady_clock::now();
    plan_.stages_.emplace_back(name, std::chrono::duration<double, std::milli>(now - start_).count());
    start_ = now;
  }

 private:
  Plan& plan_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void Plan::lower(ir::Graph graph) {
  Clock clock(*this);
  graph_ = std::move(graph);
  if (options_.fused) {
    static const ir::Pass passes[] = {ir::pass_named("fold"), ir::pass_named("simplify"), ir::pass_named("common"),
                                      ir::pass_named("losses"), ir::pass_named("dead")};
    ir::run_passes(graph_, {passes, std::size(passes)}, passes_);
  }
  clock.stage("passes");
  find_device();
  if (const ir::Node* n = placed_in_storage(graph_))
    not_planned_ = str_cat("as_strided of an input (", n->span, ") says where in its storage it begins");
  list_ = jit::lower(graph_, list_.device);
  list_.fast = options_.fast;
  for (Launch& l : list_.launches)
    if (l.flow)
      for (ir::Graph& g : l.flow->graphs) l.flow->plans.push_back(std::make_shared<const Plan>(std::move(g), options_));
  forward_copies(list_);
  written_params_ = written_params(list_);
  if (!not_planned_.empty()) return;
  clock.stage("launches");
  const auto isa = lower::Isa(eager::current_isa());
  if (options_.fused && !options_.lines) key_ = plan_key(list_, isa);
  if (!key_.empty()) kept_ = kept_plan(list_, key_, isa);
  groups_ = kept_ ? std::move(kept_->groups) : group(list_);
  if (!options_.fused)
    for (Group& g : groups_) g.fused.reset();
  for (const Group& g : groups_)
    if (g.launches.size() == 1 && !g.fused) call_host(list_, size_t(g.launches[0]));
  if (options_.fused) join_copies(list_, groups_);
  clock.stage(kept_ ? "fusion from disk" : "fusion");
}

Plan::Plan(ir::Graph graph, PlanOptions options) : options_(options) {
  lower(std::move(graph));
  Plan* self = this;
  compile({&self, 1});
}

std::vector<std::unique_ptr<Plan>> Plan::make(std::vector<ir::Graph> graphs, PlanOptions options) {
  std::vector<std::unique_ptr<Plan>> plans;
  std::vector<Plan*> all;
  for (ir::Graph& g : graphs) {
    plans.emplace_back(new Plan(options))->lower(std::move(g));
    all.push_back(plans.back().get());
  }
  compile({all.data(), all.size()});
  return plans;
}

void Plan::compile(ArrayRef<Plan*> plans) {
  std::vector<Clock> clocks;
  std::vector<Plan*> here;
  std::vector<std::pair<Device, std::vector<Plan*>>> elsewhere;
  for (Plan* p : plans) {
    clocks.emplace_back(*p);
    const Device device = p->list_.device;
    if (!p->list_.elsewhere())
      here.push_back(p);
    else if (const auto at =
                 std::find_if(elsewhere.begin(), elsewhere.end(), [&](auto& e) { return e.first == device; });
             at != elsewhere.end())
      at->second.push_back(p);
    else
      elsewhere.push_back({device, {p}});
  }
  find_programs({here.data(), here.size()});
  for (const auto& [device, list] : elsewhere) find_device_programs({list.data(), list.size()});
  for (Clock& c : clocks) c.stage("kernels");
  for (Plan* p : plans) {
    Clock clock(*p);
    p->place();
    clock.stage("memory");
    p->tell();
  }
}

size_t Plan::kernels() const {
  return size_t(std::count_if(groups_.begin(), groups_.end(), [](const Group& g) { return g.fused.has_value(); }));
}

size_t Plan::by_themselves() const {
  size_t n = 0;
  for (const Group& g : groups_) n += g.fused ? 0 : g.launches.size();
  return n;
}

// Offsets in the arena: blocks that are alive together lie apart. Largest first, each at the lowest place that is free.
void Plan::place() {
  const int64_t align = list_.elsewhere() ? kAlignElsewhere : kAlign;
  auto room = [&](int b) { return (list_.blocks[size_t(b)].bytes + align - 1) / align * align; };
  const size_t n = list_.blocks.size();
  alive_.assign(n, {-1, -1});
  auto first = [&](int b) { return alive_[size_t(b)][0]; };
  auto last = [&](int b) { return alive_[size_t(b)][1]; };
  result_.assign(n, false);
  made_by_call_.assign(n, false);
  place_.assign(n, -1);
  for (size_t s = 0; s < groups_.size(); ++s) {
    each_block(list_, groups_[s], [&](int b) {
      if (first(b) < 0) alive_[size_t(b)][0] = int(s);
      alive_[size_t(b)][1] = int(s);
    });
    for (int i : groups_[s].launches) {
      const Launch& l = list_.launches[size_t(i)];
      for (size_t k = 0; k < l.outs.size(); ++k) {
        if (l.outs[k].block >= 0 && l.kind == Launch::Call && l.fresh[k]) made_by_call_[size_t(l.outs[k].block)] = true;
      }
    }
  }
  for (const Operand& o : list_.results)
    if (o.block >= 0) result_[size_t(o.block)] = true;
  for (Step& s : steps_)
    s.leaves = std::all_of(s.operands.begin(), s.operands.begin() + s.outputs, [&](const Step::Place& o) {
      return o.block >= 0 && result_[size_t(o.block)] && last(o.block) == s.group;
    });
  ends_.assign(groups_.size(), {});
  for (size_t b = 0; b < n; ++b)
    if (made_by_call_[b] && !result_[b] && !list_.elsewhere()) ends_[size_t(last(int(b)))].push_back(int(b));
  std::vector<int> order;
  for (size_t b = 0; b < n; ++b) {
    const Block& block = list_.blocks[b];
    if (first(int(b)) < 0 || block.param >= 0 || block.constant.defined() || result_[b] || made_by_call_[b]) continue;
    if (block.on_host) {  // by itself, as a result
      result_[b] = true;
      continue;
    }
    order.push_back(int(b));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return list_.blocks[size_t(a)].bytes > list_.blocks[size_t(b)].bytes; });
  std::vector<int> placed;
  for (int b : order) {
    const int64_t bytes = room(b);
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (int o : placed)
      if (first(o) <= last(b) && first(b) <= last(o))
        taken.emplace_back(place_[size_t(o)], place_[size_t(o)] + room(o));
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (at + bytes <= begin) break;
      at = std::max(at, end);
    }
    place_[size_t(b)] = at;
    arena_ = std::max(arena_, at + bytes);
    unshared_ += bytes;
    placed.push_back(b);
  }
}

namespace {

// Whether all operands lie side by side, and how many elements there are.
template <class Places>
void find_dense(const DimVec& shape, const Places& operands, bool* dense, int64_t* elements) {
  *elements = 1;
  for (int64_t n : shape) *elements *= n;
  *dense = true;
  for (const auto& o : operands) {
    *dense &= !o.made_by;
    int64_t step = itemsize(o.dtype);
    for (size_t d = shape.size(); d-- > 0;) {
      *dense &= shape[d] == 1 || o.strides[d] == step;
      step *= shape[d];
    }
  }
}

}  // namespace

Plan::Step Plan::step_of(int group, const StrataKernelEntry* entry) const {
  Step s;
  s.group = group;
  const Group& g = groups_[size_t(group)];
  if (!g.fused || (!entry && !program_)) {
    if (g.launches.size() == 1 && !list_.elsewhere()) run_linked(list_.launches[size_t(g.launches[0])], s);
    return s;
  }
  const Fused& f = *g.fused;
  s.entry = entry;
  s.params.resize(16 * f.params.size());
  for (size_t i = 0; i < f.params.size(); ++i)
    eager::store_scalar(f.params[i].value, f.params[i].type, &s.params[16 * i]);
  s.kind = program_ ? Step::Elsewhere : f.reduced.empty() ? Step::Pointwise : Step::Rows;
  s.outputs = int(f.outs.size());
  s.shape = f.shape;
  for (const FusedOperand* o : operands_of(f)) {
    DimVec bytes;
    for (int64_t st : o->strides) bytes.push_back(st * itemsize(o->memory.dtype));
    s.operands.push_back(
        {o->memory.block, o->memory.offset * itemsize(o->memory.dtype), o->memory.dtype, bytes, o->made_by});
  }
  if (s.kind == Step::Elsewhere) return s;
  if (s.kind == Step::Pointwise) {
    find_dense(s.shape, s.operands, &s.dense, &s.elements);
    return s;
  }
  s.rows.entry = entry;
  s.rows.compute = traits(f.kernel.dtype).compute;
  std::vector<bool> reduced(f.shape.size());
  for (int64_t d : f.reduced) reduced[size_t(d)] = true;
  for (size_t d = 0; d < f.shape.size(); ++d)
    (reduced[d] ? s.rows.reduced_sizes : s.rows.kept_sizes).push_back(f.shape[d]);
  const std::vector<const FusedOperand*> operands = operands_of(f);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Step::Place& o = s.operands[i];
    eager::RowOperand row{nullptr, {}, {}, o.dtype, o.dtype, i < f.outs.size(), operands[i]->per_row};
    for (size_t d = 0; d < f.shape.size(); ++d) (reduced[d] ? row.reduced : row.kept).push_back(o.strides[d]);
    s.rows.operands.push_back(std::move(row));
  }
  s.rows.merge_dims();
  return s;
}

// A launch by itself whose linked kernel takes the operands as they are runs as a fused one does, without headers of
// tensors. Not so where a run is to check something.
bool Plan::run_linked(const Launch& l, Step& s) const {
  if (l.kind != Launch::Pointwise) return false;
  const eager::PointwiseOp& op = *l.pointwise;
  const StrataKernelEntry& entry = eager::kernel_for(op, l.dtype);
  if (entry.dtype != uint8_t(l.dtype) || entry.sets_status) return false;
  for (size_t i = 0; i < l.scalars.size(); ++i)
    if ((op.checked >> i & 1) && !fits(l.scalars[i], op.narrow >> i & 1 ? l.dtype : traits(l.dtype).compute))
      return false;
  const DimVec& shape = l.outs[0].sizes;
  std::vector<Step::Place> places;
  auto add = [&](const Operand& o, DType kernel) {
    if (o.dtype != kernel || o.block < 0 || list_.blocks[size_t(o.block)].constant.defined()) return false;
    Step::Place p{o.block, o.offset * itemsize(kernel), kernel, {}, nullptr};
    const size_t lead = shape.size() - o.sizes.size();
    for (size_t d = 0; d < shape.size(); ++d)
      p.strides.push_back(d < lead || o.sizes[d - lead] == 1 ? 0 : o.strides[d - lead] * itemsize(kernel));
    places.push_back(std::move(p));
    return true;
  };
  for (size_t i = 0; i < l.outs.size(); ++i)
    if (l.outs[i].sizes != shape || !add(l.outs[i], static_cast<DType>(entry.output_dtype[i]))) return false;
  for (size_t i = 0; i < l.ins.size(); ++i)
    if (!add(l.ins[i], op.fixed >> i & 1 ? op.fixed_dtype : l.dtype)) return false;
  s.kind = Step::Pointwise;
  s.entry = &entry;
  s.params.resize(16 * l.scalars.size());
  for (size_t i = 0; i < l.scalars.size(); ++i)
    eager::store_scalar(l.scalars[i], traits(l.dtype).compute, &s.params[16 * i]);
  s.outputs = int(l.outs.size());
  s.shape = shape;
  s.operands = std::move(places);
  find_dense(s.shape, s.operands, &s.dense, &s.elements);
  return true;
}

}  // namespace strata::jit
