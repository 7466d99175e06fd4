#include "device/batch.h"

#include <cstring>

namespace strata::device {

namespace {
constexpr size_t kFewest = 3;    // launches of a graph
constexpr size_t kMost = 512;    // launches that are kept
constexpr int kMostChanges = 4;  // of what a stretch launches, until it has no graph any more
constexpr size_t kStretches = 64;
}  // namespace

// ---- graphs

Graph::~Graph() { drop(); }

void Graph::drop() {
  if (graph_) table_->graph_release(std::exchange(graph_, nullptr));
}

// Whether the launches are those of the graph, whatever they take.
bool Graph::knows(const Launches& now) const {
  if (now.all.size() != known_.all.size()) return false;
  for (size_t i = 0; i < now.all.size(); ++i) {
    const Launches::One &a = now.all[i], &b = known_.all[i];
    if (a.kernel != b.kernel || a.group != b.group || a.items != b.items || a.past != b.past) return false;
  }
  return true;
}

bool Graph::run(Unit& unit, Queue& queue, const Launches& now) {
  // Another thread's run of the plan is here: this one's launches go by themselves.
  const std::unique_lock<std::mutex> mine(lock_, std::try_to_lock);
  if (!mine || off_ || now.all.size() < kFewest) return false;
  const int64_t released = unit.memory().released();
  if (!knows(now)) {
    drop();
    off_ = ++changes_ > kMostChanges;
    known_ = now;
    return false;
  }
  table_ = unit.plugin().table;
  StrataStatus status = STRATA_OK;
  if (!graph_) {
    std::vector<StrataLaunch> list;
    for (const Launches::One& o : now.all)
      list.push_back({sizeof(StrataLaunch), o.group, o.kernel, now.arguments.data() + o.first,
                      uint32_t(o.past - o.first), 0, o.items});
    status = table_->graph_create(unit.device().index, list.data(), uint32_t(list.size()), &graph_);
  } else {
    for (size_t i = 0; i < now.all.size() && status == STRATA_OK; ++i) {
      const Launches::One& o = now.all[i];
      const StrataArgument *to = now.arguments.data() + o.first, *from = known_.arguments.data() + o.first;
      if (released != released_ || std::memcmp(to, from, (o.past - o.first) * sizeof *to) != 0)
        status = table_->graph_change(graph_, uint32_t(i), to);
    }
  }
  known_.arguments = now.arguments;
  released_ = released;
  if (status == STRATA_OK) status = table_->graph_launch(queue.handle(), graph_);
  if (status == STRATA_OK) {
    unit.count_replayed(int64_t(now.all.size()));
    return true;
  }
  drop();
  off_ = true;
  return false;
}

std::unique_ptr<jit::DeviceReplays::Run> Graphs::begin() {
  if (blocking() || !unit_.queue().claim()) return nullptr;
  return std::make_unique<Batch>(unit_, *this);
}

Graph* Graphs::at(size_t stretch) {
  std::lock_guard<std::mutex> hold(lock_);
  if (stretch >= kStretches) return nullptr;
  while (all_.size() <= stretch) all_.emplace_back();
  return &all_[stretch];
}

// ---- batches

Batch::Batch(Unit& unit, Graphs& graphs)
    : unit_(unit), queue_(unit.queue()), graphs_(graphs), outer_((queue_.settle(), queue_.swap_batch(this))) {}

Batch::~Batch() { queue_.swap_batch(outer_); }

void Batch::add(StrataKernel kernel, const KernelNest& nest, const Bound& bound, int64_t items, const Blame& by) {
  if (launches_.all.size() == kMost) give();
  launches_.add(kernel, nest, bound, items, by);
  for (const Storage* s : bound.operands) used_.emplace_back(const_cast<Storage*>(s));
}

void Batch::give() {
  if (empty()) return;
  Launches launches = std::exchange(launches_, {});
  const std::vector<Ref<Storage>> used = std::exchange(used_, {});
  Graph* graph = graphs_.at(stretch_++);
  queue_.give(launches, [&] { return graph && graph->run(unit_, queue_, launches); });
}

}  // namespace strata::device
