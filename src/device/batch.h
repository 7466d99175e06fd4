// Launches that are given to a queue together. Where the device has graphs, the launches of a plan's run are kept until
// something else is asked of the queue or the run ends; a graph of them, made when they come a second time, is then
// told what is different and replayed.
//
// Nothing is taken for known that could have changed: each run says all that each launch takes, and a launch that takes
// anything else than in the graph is told anew. A handle of memory says nothing once its device has released memory:
// the same one may stand for other memory then, and all launches are told anew.
#pragma once
#include <deque>

#include "device/unit.h"
#include "jit/compile/elsewhere.h"

namespace strata::device {

// The launches of one stretch of a plan: between two that ask something else of the queue.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  // Gives them to the queue; false: it gave nothing, and they are to be launched one by one.
  bool run(Unit& unit, Queue& queue, const Launches& now);

 private:
  bool knows(const Launches& now) const;
  void drop();

  std::mutex lock_;
  Launches known_;
  const StrataDevice* table_ = nullptr;
  StrataGraph graph_ = nullptr;
  int64_t released_ = 0;
  int changes_ = 0;  // of what is launched
  bool off_ = false;
};

// The graphs of a plan, by stretch.
class Graphs final : public jit::DeviceReplays {
 public:
  explicit Graphs(Unit& unit) : unit_(unit) {}
  std::unique_ptr<Run> begin() override;
  Graph* at(size_t stretch);  // null beyond the most

 private:
  Unit& unit_;
  std::mutex lock_;
  std::deque<Graph> all_;  // by stretch
};

// Open on the current queue from its making on. Of one thread.
class Batch final : public jit::DeviceReplays::Run {
 public:
  Batch(Unit& unit, Graphs& graphs);
  ~Batch() override;  // what was not given is left out
  void add(StrataKernel kernel, const KernelNest& nest, const Bound& bound, int64_t items, const Blame& by);
  void give() override;
  bool empty() const { return launches_.all.empty(); }

 private:
  Unit& unit_;
  Queue& queue_;
  Graphs& graphs_;
  Batch* const outer_;
  size_t stretch_ = 0;
  Launches launches_;
  std::vector<Ref<Storage>> used_;  // nobody else's before the launches are given
};

}  // namespace strata::device
