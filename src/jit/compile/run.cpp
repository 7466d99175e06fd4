// What a run does: places of blocks, the steps in order, results.
#include <algorithm>

#include "core/parallel.h"
#include "dispatch/boxed.h"
#include "ir/call.h"
#include "jit/compile/frame.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "run/loop/pointwise_loop.h"
#include "run/loop/rows_loop.h"

namespace strata::jit {

Tensor Plan::argument(const Operand& o, const Frame& f) const {
  if (o.block < 0) return {};
  const Block& b = list_.blocks[size_t(o.block)];
  if (b.constant.defined()) return b.constant;
  if (b.param >= 0 && o == list_.params[size_t(b.param)]) return f.params[size_t(b.param)];
  const Frame::Place& at = f.at[size_t(o.block)];
  // Nothing is launched for what is empty, so that a call that writes it comes first.
  if (STRATA_UNLIKELY(!at.storage)) {
    STRATA_INTERNAL(b.bytes == 0, "a block of ", b.bytes, " bytes is read before it is made");
    return make_tensor_strided(o.sizes, o.strides, o.dtype, list_.elsewhere() && !b.on_host ? list_.device : Device{});
  }
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
  if (program_ && !list_.blocks[size_t(l.outs[0].block)].on_host)
    return program_->run(l, outs, ins, l.draw ? state_of(*l.draw, f) : PhiloxState{});
  const ArrayRef<const Tensor*> to(out_list.data(), out_list.size()), from(in_list.data(), in_list.size());
  switch (l.kind) {
    case Launch::Pointwise:
      return eager::launch(*l.pointwise, l.dtype, to, from, l.scalars);
    case Launch::Rows:
      return eager::launch(*l.rows, l.dtype, outs, from, l.scalars, l.dims);
    case Launch::Draw:
      return eager::draw_at(*l.draw->op, l.dtype, outs[0], ins, l.draw->numbers, state_of(*l.draw, f));
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
      if (status && s.checks && !program_) refuse(l, f);
      return eager::raise_status(status, l.name, s.outside);
    }
  }
}

// Of join_copies().
void Plan::run_copies(const Group& g, Frame& f) const {
  constexpr int64_t kBytes = 256 << 10;  // at a time, which stay in the second-level cache
  std::vector<std::pair<Tensor, Tensor>> copies;
  int64_t bytes = 0;
  for (int i : g.launches) {
    const Launch& l = list_.launches[size_t(i)];
    copies.emplace_back(argument(l.outs[0], f), argument(l.ins[0], f));
    bytes += copies.back().first.nbytes();
  }
  const int64_t rows = copies[0].first.sizes()[0];
  const int64_t each = std::max<int64_t>(1, rows * kBytes / std::max<int64_t>(bytes, 1));
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * each; first < std::min(end * each, rows); first += each) {
      auto part = [&](const Tensor& t) {
        DimVec sizes(t.sizes());
        sizes[0] = std::min(each, rows - first);
        return t.alias(sizes, t.strides(), t.storage_offset() + first * t.strides()[0]);
      };
      for (const auto& [to, from] : copies) eager::copy_values(part(to), part(from));
    }
  };
  // Threads share out pieces, or, of a few long ones, each.
  const int64_t pieces = (rows + each - 1) / each;
  each > 1 || pieces >= 4 * num_threads() ? parallel_for(0, pieces, 1, run) : run(0, pieces);
}

void Plan::run_call(const Launch& l, Frame& f) const {
  // It may do anything, on other threads as well, which then finds what was launched before.
  if (f.kept) f.kept->give();
  const ir::Node& node = *l.node;
  Stack stack;
  if (l.flow) {
    std::vector<Tensor> operands;
    for (const Operand& o : l.ins) operands.push_back(argument(o, f));
    for (Tensor& t : l.flow->run(operands)) stack.push_back(IValue(std::move(t)));
  } else {
    size_t next = 0;
    stack = ir::stack_of(node, [&](ir::Id) { return argument(l.ins[next++], f); });
    ir::read_slots(node, stack);
    call_boxed(*node.op, stack);
  }
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
    if (t.device().is_cpu()) at.base = t.bytes() - o.offset * t.itemsize();
  });
  if (l.draws) reserve(f.stretches.size(), f);
}

void Plan::reserve(size_t stretch, Frame& f) const {
  const int64_t counters = list_.stretches[stretch];
  f.stretches.push_back(counters ? default_generator(list_.device).reserve(4 * counters) : PhiloxState{});
}

PhiloxState Plan::state_of(const DrawData& draw, const Frame& f) const {
  PhiloxState s = f.stretches[draw.stretch];
  s.offset += uint64_t(draw.counter);
  return s;
}

// A kernel has found an index outside: the operator itself says which.
void Plan::refuse(const Launch& l, Frame& f) const {
  size_t next = 0;
  Stack stack = ir::stack_of(*l.node, [&](ir::Id) { return argument(l.ins[l.space->args[next++]], f); });
  call_boxed(*l.node->op, stack);
  STRATA_INTERNAL(false, l.name, ": its kernel found an index outside that the operator accepts");
}

struct Plan::Makers {
  std::vector<std::unique_ptr<eager::Maker>> all;  // by operand that lies nowhere
  std::vector<std::pair<const Launch*, const eager::SpacePieces*>> checked;

  Makers(const Plan& plan, const Step& step, const Frame& f) {
    for (const Step::Place& o : step.operands) {
      if (!o.made_by) continue;
      const Launch& l = *o.made_by;
      if (l.kind == Launch::Draw) {
        all.push_back(std::make_unique<eager::WordMaker>(plan.state_of(*l.draw, f), itemsize(o.dtype) / 4));
        continue;
      }
      std::vector<Tensor> ins;
      for (const Operand& i : l.ins) ins.push_back(plan.argument(i, f));
      auto pieces = pieces_of(l, ins);
      if (l.space->checks) checked.emplace_back(&l, pieces.get());
      all.push_back(std::move(pieces));
    }
  }
};

void Plan::run_step(const Step& s, Frame& f) const {
  const Group& g = groups_[size_t(s.group)];
  if (s.kind == Step::Single) {
    if (g.copies) return run_copies(g, f);
    for (int i : g.launches) {
      const Launch& l = list_.launches[size_t(i)];
      l.kind == Launch::Call ? run_call(l, f) : run_single(l, f);
    }
    return;
  }
  if (s.kind == Step::Elsewhere) return run_elsewhere(s, f);
  const Makers makers(*this, s, f);
  size_t made = 0;
  auto at = [&](const Step::Place& o) {
    return o.made_by ? eager::made_base() : f.at[size_t(o.block)].base + o.offset;
  };
  auto refused = [&] {
    for (const auto& [launch, pieces] : makers.checked)
      if (pieces->status()) refuse(*launch, f);
  };
  const size_t count = s.operands.size();
  if (s.kind == Step::Rows) {
    eager::RowsLoop loop = s.rows;
    loop.params = s.params.data();
    for (size_t i = 0; i < count; ++i) {
      loop.operands[i].base = at(s.operands[i]);
      if (s.operands[i].made_by) loop.operands[i].maker = makers.all[made++].get();
    }
    loop.run();
    return refused();
  }
  if (s.dense) {
    char* ptr[eager::kMaxOperands];
    int64_t size[eager::kMaxOperands];
    for (size_t i = 0; i < count; ++i) {
      ptr[i] = at(s.operands[i]);
      size[i] = itemsize(s.operands[i].dtype);
    }
    eager::run_contiguous(s.entry->pointwise, ptr, size, s.outputs, int(count) - s.outputs, s.params.data(), s.elements,
                          !s.leaves);
    return;
  }
  eager::PointwiseLoop loop(s.shape);
  for (size_t i = 0; i < count; ++i) {
    const Step::Place& o = s.operands[i];
    if (o.made_by)
      loop.add_made(*makers.all[made++], o.strides, o.dtype);
    else
      loop.add(at(o), o.strides, o.dtype, int(i) < s.outputs);
  }
  loop.run(*s.entry, s.params.data());
  refused();
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

Ref<Storage> Plan::memory(size_t bytes, bool on_host) const {
  return list_.elsewhere() && !on_host ? Storage::away(allocator_for(list_.device), bytes)
                                       : Storage::make(allocator_for(Device{}), bytes);
}

std::vector<Tensor> Plan::run(TensorList params) const {
  const ir::BelowAutograd below;
  for (int w : written_params_) params[size_t(w)].check_writable("a compiled graph");
  // A write that another argument would see moves nothing in the graph's own order.
  if (one_by_one() || written_shared(params)) return ir::Interpreter(graph_).run(params);
  Frame f;
  const size_t n = list_.blocks.size();
  f.params = params;
  f.at.resize(n);
  Ref<Storage> arena;
  if (arena_ >= 0) arena = memory(size_t(arena_), false);
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
      at.storage = memory(size_t(block.bytes), block.on_host);
    } else {
      continue;
    }
    if (at.storage->data()) at.base = static_cast<char*>(at.storage->data()) + at.offset;
  }
  reserve(0, f);
  const std::unique_ptr<DeviceReplays::Run> kept = replays_ ? replays_->begin() : nullptr;
  f.kept = kept.get();
  auto written = [&] {
    for (int w : written_params_) params[size_t(w)].bump_version("a compiled graph");
  };
  try {
    for (const Step& s : steps_) {
      run_step(s, f);
      // The next call finds its memory in the caches.
      for (int b : ends_[size_t(s.group)]) f.at[size_t(b)].storage = {};
    }
    if (kept) kept->give();
  } catch (...) {
    written();  // some may be
    throw;
  }
  written();
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
