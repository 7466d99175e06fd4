#include "jit/service/ahead.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "dispatch/info.h"
#include "ir/rewrite.h"
#include "jit/service/gate.h"
#include "ops/matmul/product.h"
#include "vendor/library_host.h"

namespace strata::jit {

namespace {

std::atomic<bool> begun{false};

struct Work {
  void set(bool on) {
    const std::lock_guard<std::mutex> hold(mutex);
    going = on;
    ended.notify_all();
  }
  std::mutex mutex;
  std::condition_variable ended;
  bool going = false;
};
Work& work() {
  static Work* one = new Work;
  return *one;
}

bool may_use_library(const Operator& op) {
  const std::optional<OpInfo> i = info(op);
  return i && i->order.find("a library that computes it") != i->order.npos;
}

// Of a product of matrices exactly, of others about: the root of the elements of two operands and the result.
double multiplications(const ir::Graph& graph, const ir::Node& node) {
  double largest[2] = {0, 0}, made = 0;
  auto elements = [&](ir::Id v) {
    const ir::Type& type = graph.values[size_t(v)].type;
    double n = type.device.is_cpu() && eager::library_type(type.dtype) >= 0;
    for (const SymInt& s : type.sizes) n *= double(s.hint());
    return n;
  };
  ir::each_use(node, [&](ir::Id v) {
    double n = elements(v);
    if (n > largest[0]) std::swap(n, largest[0]);
    largest[1] = std::max(largest[1], n);
  });
  for (ir::Id v : node.results)
    if (v != ir::kNone) made = std::max(made, elements(v));
  return std::sqrt(largest[0] * largest[1] * made);
}

}  // namespace

void note_ahead(const ir::Graph& graph, const ir::Node& node) {
  if (begun.load(std::memory_order_relaxed) || !may_use_library(*node.op) || !eager::library_enabled()) return;
  if (multiplications(graph, node) <= double(eager::kSmallProduct) || begun.exchange(true)) return;
  Gate::process().enter();  // the thread leaves
  work().set(true);
  auto run = [] {
    try {
      eager::prepare_library();
    } catch (...) {  // whoever needs it tries again and meets the error
    }
    work().set(false);
    Gate::process().leave();
  };
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {  // no thread to be had
    work().set(false);
    Gate::process().leave();
  }
}

void finish_ahead() {
  std::unique_lock<std::mutex> lock(work().mutex);
  work().ended.wait(lock, [] { return !work().going; });
}

}  // namespace strata::jit
