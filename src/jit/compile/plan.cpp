#include "jit/compile/plan.h"

#include <algorithm>
#include <chrono>

#include "core/promote.h"
#include "dispatch/boxed.h"
#include "ir/call.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "run/loop/cast.h"
#include "run/loop/pointwise_loop.h"
#include "run/loop/rows_loop.h"
#include "run/loop/words.h"

namespace strata::jit {

namespace {

constexpr int64_t kAlign = 64;

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
      if (o->memory.block >= 0) fn(o->memory.block);
    return;
  }
  for (int i : g.launches)
    for (const auto* operands : {&list.launches[size_t(i)].outs, &list.launches[size_t(i)].ins})
      for (const Operand& o : *operands)
        if (o.block >= 0) fn(o.block);
}

}  // namespace

// What one run needs: where each block is, and the state of the generator at the beginning of each stretch of draws.
struct Plan::Frame {
  Ref<Storage> arena;
  std::vector<char*> base;
  std::vector<Ref<Storage>> storage;
  std::vector<int64_t> offset;  // bytes from the storage's beginning to the block
  std::vector<PhiloxState> stretches;
};

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
                                      ir::pass_named("dead")};
    ir::run_passes(graph_, {passes, std::size(passes)}, passes_);
  }
  clock.stage("passes");
  list_ = jit::lower(graph_);
  forward_copies(list_);
  written_params_ = written_params(list_);
  clock.stage("launches");
  groups_ = group(list_);
  if (!options_.fused)
    for (Group& g : groups_) g.fused.reset();
  clock.stage("fusion");
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
  for (Plan* p : plans) clocks.emplace_back(*p);
  find_programs(plans);
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

// Offsets in the arena: blocks that are alive together lie apart. Largest first, each at the lowest place that is free.
void Plan::place() {
  const size_t n = list_.blocks.size();
  std::vector<int> first(n, -1), last(n, -1);
  result_.assign(n, false);
  made_by_call_.assign(n, false);
  place_.assign(n, -1);
  for (size_t s = 0; s < groups_.size(); ++s) {
    each_block(list_, groups_[s], [&](int b) {
      if (first[size_t(b)] < 0) first[size_t(b)] = int(s);
      last[size_t(b)] = int(s);
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
  std::vector<int> order;
  for (size_t b = 0; b < n; ++b) {
    const Block& block = list_.blocks[b];
    if (first[b] < 0 || block.param >= 0 || block.constant.defined() || result_[b] || made_by_call_[b]) continue;
    order.push_back(int(b));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return list_.blocks[size_t(a)].bytes > list_.blocks[size_t(b)].bytes; });
  std::vector<int> placed;
  for (int b : order) {
    const int64_t bytes = (list_.blocks[size_t(b)].bytes + kAlign - 1) / kAlign * kAlign;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (int o : placed)
      if (first[size_t(o)] <= last[size_t(b)] && first[size_t(b)] <= last[size_t(o)])
        taken.emplace_back(place_[size_t(o)],
                           place_[size_t(o)] + (list_.blocks[size_t(o)].bytes + kAlign - 1) / kAlign * kAlign);
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

Plan::Step Plan::step_of(int group, const StrataKernelEntry* entry) const {
  Step s;
  s.group = group;
  const Group& g = groups_[size_t(group)];
  if (!g.fused || !entry) return s;
  const Fused& f = *g.fused;
  s.entry = entry;
  s.params.resize(16 * f.params.size());
  for (size_t i = 0; i < f.params.size(); ++i)
    eager::store_scalar(f.params[i].value, f.params[i].type, &s.params[16 * i]);
  s.kind = f.reduced.empty() ? Step::Pointwise : Step::Rows;
  s.elements = 1;
  for (int64_t n : f.shape) s.elements *= n;
  s.dense = true;
  for (const FusedOperand* o : operands_of(f)) {
    DimVec bytes;
    int64_t step = 1;
    s.dense &= !o->words;
    for (int64_t d = int64_t(f.shape.size()); d-- > 0;) {
      s.dense &= f.shape[size_t(d)] == 1 || o->strides[size_t(d)] == step;
      step *= f.shape[size_t(d)];
    }
    for (int64_t st : o->strides) bytes.push_back(st * itemsize(o->memory.dtype));
    s.strides.push_back(std::move(bytes));
  }
  return s;
}

namespace {

Tensor tensor_at(const Operand& o, const Ref<Storage>& storage, int64_t bytes) {
  return make_tensor_over(storage, o.sizes, o.strides, bytes / itemsize(o.dtype) + o.offset, o.dtype);
}

}  // namespace

void Plan::run_single(const Launch& l, Frame& f) const {
  auto tensor = [&](const Operand& o) {
    const Block& b = list_.blocks[size_t(o.block)];
    if (b.constant.defined()) return b.constant;
    return tensor_at(o, f.storage[size_t(o.block)], f.offset[size_t(o.block)]);
  };
  std::vector<Tensor> outs, ins;
  for (const Operand& o : l.outs) outs.push_back(tensor(o));
  for (const Operand& o : l.ins) ins.push_back(tensor(o));
  std::vector<const Tensor*> out_list, in_list;
  for (const Tensor& t : outs) out_list.push_back(&t);
  for (const Tensor& t : ins) in_list.push_back(&t);
  const ArrayRef<const Tensor*> to(out_list.data(), out_list.size()), from(in_list.data(), in_list.size());
  switch (l.kind) {
    case Launch::Pointwise:
      return eager::launch(*l.pointwise, l.dtype, to, from, l.scalars);
    case Launch::Rows:
      return eager::launch(*l.rows, l.dtype, outs, from, l.scalars, l.dims);
    case Launch::Draw:
      return eager::draw_at(*l.draw->op, l.dtype, outs[0], ins, l.draw->numbers, words_of(*l.draw, f));
    case Launch::Copy:
      return eager::copy_values(outs[0], ins[0]);
    case Launch::Fill:
      return eager::fill_values(outs[0], l.scalars[0]);
    default: {
      const SpaceData& s = *l.space;
      const int32_t status = eager::launch(eager::SpaceCall{*s.op,
                                                            l.name,
                                                            l.dtype,
                                                            to,
                                                            from,
                                                            {s.places.data(), s.places.size()},
                                                            {s.scalars.data(), s.scalars.size()},
                                                            {s.lists.data(), s.lists.size()},
                                                            {s.extents.data(), s.extents.size()},
                                                            s.index});
      return eager::raise_status(status, l.name);
    }
  }
}

void Plan::run_call(const Launch& l, Frame& f) const {
  const ir::Node& node = *l.node;
  size_t next = 0;
  auto argument = [&]() -> Tensor {
    const Operand& o = l.ins[next++];
    if (o.block < 0) return {};
    const Block& b = list_.blocks[size_t(o.block)];
    if (b.constant.defined()) return b.constant;
    return tensor_at(o, f.storage[size_t(o.block)], f.offset[size_t(o.block)]);
  };
  Stack stack = ir::stack_of(node, [&](ir::Id) { return argument(); });
  ir::read_slots(node, stack);
  call_boxed(*node.op, stack);
  size_t k = 0;
  ir::each_tensor(stack, [&](const Tensor& t) {
    const Operand& o = l.outs[k];
    const bool fresh = l.fresh[k++];
    if (!fresh || o.block < 0) return;
    STRATA_INTERNAL(t.defined() && t.sizes() == IntArrayRef(o.sizes) && t.strides() == IntArrayRef(o.strides) &&
                        t.dtype() == o.dtype,
                    l.name, ": gave another result than its shape rule says");
    f.storage[size_t(o.block)] = t.storage();
    f.offset[size_t(o.block)] = (t.storage_offset() - o.offset) * t.itemsize();
    f.base[size_t(o.block)] = t.bytes() - o.offset * t.itemsize();
  });
  if (l.draws) reserve(f.stretches.size(), f);
}

void Plan::reserve(size_t stretch, Frame& f) const {
  const int64_t counters = list_.stretches[stretch];
  f.stretches.push_back(counters ? default_generator().reserve(4 * counters) : PhiloxState{});
}

PhiloxState Plan::words_of(const DrawData& draw, const Frame& f) {
  PhiloxState s = f.stretches[draw.stretch];
  s.offset += uint64_t(draw.counter);
  return s;
}

void Plan::run_step(const Step& s, Frame& f) const {
  const Group& g = groups_[size_t(s.group)];
  if (s.kind == Step::Single) {
    for (int i : g.launches) {
      const Launch& l = list_.launches[size_t(i)];
      l.kind == Launch::Call ? run_call(l, f) : run_single(l, f);
    }
    return;
  }
  const Fused& k = *g.fused;
  const std::vector<const FusedOperand*> operands = operands_of(k);
  auto at = [&](const FusedOperand& o) {
    if (o.words) return eager::words_base();
    return f.base[size_t(o.memory.block)] + o.memory.offset * itemsize(o.memory.dtype);
  };
  if (s.kind == Step::Rows) {
    eager::RowsLoop loop;
    loop.entry = s.entry;
    loop.params = s.params.data();
    loop.compute = traits(k.kernel.dtype).compute;
    std::vector<bool> reduced(k.shape.size());
    for (int64_t d : k.reduced) reduced[size_t(d)] = true;
    for (size_t d = 0; d < k.shape.size(); ++d)
      (reduced[d] ? loop.reduced_sizes : loop.kept_sizes).push_back(k.shape[d]);
    for (size_t i = 0; i < operands.size(); ++i) {
      const FusedOperand& o = *operands[i];
      eager::RowOperand row{at(o), {}, {}, o.memory.dtype, o.memory.dtype, i < k.outs.size(), o.per_row};
      for (size_t d = 0; d < k.shape.size(); ++d) (reduced[d] ? row.reduced : row.kept).push_back(s.strides[i][d]);
      if (o.words) row.words = true, row.state = words_of(*o.words, f);
      loop.operands.push_back(std::move(row));
    }
    loop.merge_dims();
    loop.run();
    return;
  }
  if (s.dense) {
    char* ptr[eager::kMaxOperands];
    int64_t size[eager::kMaxOperands];
    for (size_t i = 0; i < operands.size(); ++i) {
      ptr[i] = at(*operands[i]);
      size[i] = itemsize(operands[i]->memory.dtype);
    }
    eager::run_contiguous(s.entry->pointwise, ptr, size, int(k.outs.size()), int(k.ins.size()), s.params.data(),
                          s.elements);
    return;
  }
  eager::PointwiseLoop loop(k.shape);
  for (size_t i = 0; i < operands.size(); ++i) {
    const FusedOperand& o = *operands[i];
    if (o.words)
      loop.add_words(words_of(*o.words, f), s.strides[i], o.memory.dtype);
    else
      loop.add(at(o), s.strides[i], o.memory.dtype, i < k.outs.size());
  }
  loop.run(s.entry->pointwise, s.params.data());
}

std::vector<Tensor> Plan::run(TensorList params) const {
  const ir::BelowAutograd below;
  for (int w : written_params_) params[size_t(w)].check_writable("a compiled graph");
  // A write that another argument would see moves nothing in the graph's own order.
  for (int w : written_params_)
    for (size_t i = 0; i < params.size(); ++i)
      if (int(i) != w && params[i].storage().get() == params[size_t(w)].storage().get())
        return ir::Interpreter(graph_).run(params);
  Frame f;
  const size_t n = list_.blocks.size();
  f.base.resize(n);
  f.storage.resize(n);
  f.offset.resize(n);
  f.arena = Storage::make(allocator_for(Device{}), size_t(arena_));
  for (size_t b = 0; b < n; ++b) {
    const Block& block = list_.blocks[b];
    if (block.param >= 0) {
      const Tensor& t = params[size_t(block.param)];
      f.storage[b] = t.storage();
      f.offset[b] = t.storage_offset() * t.itemsize();
    } else if (place_[b] >= 0) {
      f.storage[b] = f.arena;
      f.offset[b] = place_[b];
    } else if (result_[b] && !made_by_call_[b]) {
      f.storage[b] = Storage::make(allocator_for(Device{}), size_t(block.bytes));
    } else {
      continue;
    }
    f.base[b] = static_cast<char*>(f.storage[b]->data()) + f.offset[b];
  }
  reserve(0, f);
  for (const Step& s : steps_) run_step(s, f);
  for (int w : written_params_) params[size_t(w)].bump_version("a compiled graph");
  std::vector<Tensor> results;
  for (size_t r = 0; r < list_.results.size(); ++r) {
    const Operand& o = list_.results[r];
    if (o.block < 0) {
      results.emplace_back();
    } else if (list_.same_as_param[r] >= 0) {
      results.push_back(params[size_t(list_.same_as_param[r])]);
    } else {
      const Block& block = list_.blocks[size_t(o.block)];
      results.push_back(block.constant.defined() ? block.constant
                                                 : tensor_at(o, f.storage[size_t(o.block)], f.offset[size_t(o.block)]));
    }
  }
  return results;
}

}  // namespace strata::jit
