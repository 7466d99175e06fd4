// Plans of graphs whose tensors lie on a device of a plugin: their fused kernels are one text of the device's, and
// every launch goes to its current queue.
#include <cstring>

#include "jit/compile/frame.h"

namespace strata::jit {

// One device of a plugin, and the CPU beside it: the graph's launches are its. Several: one by one.
void Plan::find_device() {
  Device found;
  for (const ir::Value& v : graph_.values) {
    const Device d = v.type.device;
    if (d.type <= 1) continue;
    if (found.type > 1 && !(found == d)) {
      not_planned_ = str_cat("its tensors lie on ", found, " and on ", d);
      return;
    }
    found = d;
  }
  if (found.type <= 1) return;
  if (!device_backend().compile) {
    not_planned_ = str_cat("nothing runs kernels on ", found);
    return;
  }
  list_.device = found;
}

bool Plan::one_by_one() const { return !not_planned_.empty() || (list_.elsewhere() && device_backend().rescues()); }

// The kernels of all plans are compiled together: a device's compiler takes long to start.
void Plan::find_device_programs(ArrayRef<Plan*> plans) {
  if (plans.empty()) return;
  std::vector<DeviceKernel> kernels;
  for (Plan* p : plans)
    for (Group& g : p->groups_) {
      if (!g.fused) continue;
      g.fused->kernel.text = g.fused->elsewhere->nest.text = operators_of(p->list_, g);
      kernels.push_back(*g.fused->elsewhere);
    }
  const std::shared_ptr<DeviceProgram> program = device_backend().compile(plans[0]->list_.device, std::move(kernels));
  size_t next = 0;
  for (Plan* p : plans) {
    p->program_ = program;
    p->replays_ = program->replays();
    p->source_of_.assign(p->groups_.size(), -1);
    for (size_t g = 0; g < p->groups_.size(); ++g) {
      p->steps_.push_back(p->step_of(int(g), nullptr));
      if (p->groups_[g].fused) p->steps_.back().kernel = next++;
    }
  }
}

std::string Plan::source_for(const std::string& device) const {
  STRATA_CHECK_VALUE(program_, "source: expected a graph of a device's tensors, to print it for ", device);
  return program_->source(device);
}

void Plan::run_elsewhere(const Step& s, Frame& f) const {
  const Group& g = groups_[size_t(s.group)];
  const Fused& fused = *g.fused;
  InlineVec<const Storage*, 12> memory;
  InlineVec<int64_t, 12> offset;
  for (const Step::Place& o : s.operands) {
    const Frame::Place& at = f.at[size_t(o.block)];
    memory.push_back(at.storage.get());
    offset.push_back(at.offset + o.offset);
  }
  InlineVec<uint64_t, 16> numbers;  // 16 bytes each
  numbers.resize(s.params.size() / 8);
  if (!s.params.empty()) std::memcpy(numbers.begin(), s.params.data(), s.params.size());
  for (size_t k = 0; k < fused.params.size(); ++k) {
    const FusedParam& p = fused.params[k];
    if (!p.drawn_by) continue;
    const PhiloxState state = state_of(*p.drawn_by->draw, f);
    numbers[2 * k] = p.seed ? state.seed : state.offset;
  }
  program_->run(s.kernel, {memory.data(), memory.size()}, {offset.data(), offset.size()}, numbers.data(),
                list_.launches[size_t(g.launches[0])].name);
}

}  // namespace strata::jit
