#include "jit/compile/plan.h"

#include <algorithm>
#include <chrono>

#include "base/inline_vec.h"
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
  struct Place {
    char* base = nullptr;
    Ref<Storage> storage;
    int64_t offset = 0;  // bytes from the storage's beginning to the block
  };
  TensorList params;
  InlineVec<Place, 12> at;
  InlineVec<PhiloxState, 2> stretches;
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

namespace {

// Whether all operands lie side by side, and how many elements there are.
template <class Places>
void find_dense(const DimVec& shape, const Places& operands, bool* dense, int64_t* elements) {
  *elements = 1;
  for (int64_t n : shape) *elements *= n;
  *dense = true;
  for (const auto& o : operands) {
    *dense &= !o.words;
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
  if (!g.fused || !entry) {
    if (g.launches.size() == 1) run_linked(list_.launches[size_t(g.launches[0])], s);
    return s;
  }
  const Fused& f = *g.fused;
  s.entry = entry;
  s.params.resize(16 * f.params.size());
  for (size_t i = 0; i < f.params.size(); ++i)
    eager::store_scalar(f.params[i].value, f.params[i].type, &s.params[16 * i]);
  s.kind = f.reduced.empty() ? Step::Pointwise : Step::Rows;
  s.outputs = int(f.outs.size());
  s.shape = f.shape;
  for (const FusedOperand* o : operands_of(f)) {
    DimVec bytes;
    for (int64_t st : o->strides) bytes.push_back(st * itemsize(o->memory.dtype));
    s.operands.push_back(
        {o->memory.block, o->memory.offset * itemsize(o->memory.dtype), o->memory.dtype, bytes, o->words});
  }
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
    row.words = o.words;
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

Tensor Plan::argument(const Operand& o, const Frame& f) const {
  if (o.block < 0) return {};
  const Block& b = list_.blocks[size_t(o.block)];
  if (b.constant.defined()) return b.constant;
  if (b.param >= 0 && o == list_.params[size_t(b.param)]) return f.params[size_t(b.param)];
  const Frame::Place& at = f.at[size_t(o.block)];
  return make_tensor_over(at.storage, o.sizes, o.strides, at.offset / itemsize(o.dtype) + o.offset, o.dtype);
}

void Plan::run_single(const Launch& l, Frame& f) const {
  std::vector<Tensor> outs, ins;
  outs.reserve(l.outs.size());
  ins.reserve(l.ins.size());
  for (const Operand& o : l.outs) outs.push_back(argument(o, f));
  for (const Operand& o : l.ins) ins.push_back(argument(o, f));
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
  Stack stack = ir::stack_of(node, [&](ir::Id) { return argument(l.ins[next++], f); });
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
    Frame::Place& at = f.at[size_t(o.block)];
    at.storage = t.storage();
    at.offset = (t.storage_offset() - o.offset) * t.itemsize();
    at.base = t.bytes() - o.offset * t.itemsize();
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
  auto at = [&](const Step::Place& o) { return o.words ? eager::words_base() : f.at[size_t(o.block)].base + o.offset; };
  const size_t count = s.operands.size();
  if (s.kind == Step::Rows) {
    eager::RowsLoop loop = s.rows;
    loop.params = s.params.data();
    for (size_t i = 0; i < count; ++i) {
      loop.operands[i].base = at(s.operands[i]);
      if (s.operands[i].words) loop.operands[i].state = words_of(*s.operands[i].words, f);
    }
    loop.run();
    return;
  }
  if (s.dense) {
    char* ptr[eager::kMaxOperands];
    int64_t size[eager::kMaxOperands];
    for (size_t i = 0; i < count; ++i) {
      ptr[i] = at(s.operands[i]);
      size[i] = itemsize(s.operands[i].dtype);
    }
    eager::run_contiguous(s.entry->pointwise, ptr, size, s.outputs, int(count) - s.outputs, s.params.data(),
                          s.elements);
    return;
  }
  eager::PointwiseLoop loop(s.shape);
  for (size_t i = 0; i < count; ++i) {
    const Step::Place& o = s.operands[i];
    if (o.words)
      loop.add_words(words_of(*o.words, f), o.strides, o.dtype);
    else
      loop.add(at(o), o.strides, o.dtype, int(i) < s.outputs);
  }
  loop.run(s.entry->pointwise, s.params.data());
}

// Whether a parameter that is written shares its memory with another. An optimiser's step has hundreds of both.
bool Plan::written_shared(TensorList params) const {
  if (written_params_.empty()) return false;
  std::vector<const Storage*> others, written;
  for (const Tensor& t : params) others.push_back(t.storage().get());
  for (int w : written_params_) written.push_back(std::exchange(others[size_t(w)], nullptr));
  if (written.size() == 1) return std::find(others.begin(), others.end(), written[0]) != others.end();
  std::sort(written.begin(), written.end());
  return std::adjacent_find(written.begin(), written.end()) != written.end() ||
         std::any_of(others.begin(), others.end(),
                     [&](const Storage* s) { return s && std::binary_search(written.begin(), written.end(), s); });
}

std::vector<Tensor> Plan::run(TensorList params) const {
  const ir::BelowAutograd below;
  for (int w : written_params_) params[size_t(w)].check_writable("a compiled graph");
  // A write that another argument would see moves nothing in the graph's own order.
  if (written_shared(params)) return ir::Interpreter(graph_).run(params);
  Frame f;
  const size_t n = list_.blocks.size();
  f.params = params;
  f.at.resize(n);
  Ref<Storage> arena;
  if (arena_ >= 0) arena = Storage::make(allocator_for(Device{}), size_t(arena_));
  for (size_t b = 0; b < n; ++b) {
    const Block& block = list_.blocks[b];
    Frame::Place& at = f.at[b];
    if (block.param >= 0) {
      const Tensor& t = params[size_t(block.param)];
      at.storage = t.storage();
      at.offset = t.storage_offset() * t.itemsize();
    } else if (place_[b] >= 0) {
      at.storage = arena;
      at.offset = place_[b];
    } else if (result_[b] && !made_by_call_[b]) {
      at.storage = Storage::make(allocator_for(Device{}), size_t(block.bytes));
    } else {
      continue;
    }
    at.base = static_cast<char*>(at.storage->data()) + at.offset;
  }
  reserve(0, f);
  for (const Step& s : steps_) run_step(s, f);
  for (int w : written_params_) params[size_t(w)].bump_version("a compiled graph");
  std::vector<Tensor> results;
  results.reserve(list_.results.size());
  for (size_t r = 0; r < list_.results.size(); ++r) {
    const Operand& o = list_.results[r];
    if (o.block < 0) {
      results.emplace_back();
    } else if (list_.same_as_param[r] >= 0) {
      results.push_back(params[size_t(list_.same_as_param[r])]);
    } else {
      const Block& block = list_.blocks[size_t(o.block)];
      const Frame::Place& at = f.at[size_t(o.block)];
      results.push_back(block.constant.defined() ? block.constant
                                                 : make_tensor_over(at.storage, o.sizes, o.strides,
                                                                    at.offset / itemsize(o.dtype) + o.offset, o.dtype));
    }
  }
  return results;
}

}  // namespace strata::jit
