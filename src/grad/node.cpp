#include "grad/node.h"

#include <atomic>

#include "grad/saved_tensor.h"
#include "grad/streams.h"
#include "grad/variable.h"

namespace strata {

void (*forget_python_node)(void* object) = nullptr;
std::string (*take_stack_text)() = nullptr;

namespace {
std::atomic<bool> anomaly_{false}, anomaly_nan_{true};
thread_local uint64_t sequence_ STRATA_HOT_TLS = 0;
}  // namespace

bool anomaly_enabled() { return anomaly_.load(std::memory_order_relaxed); }
bool anomaly_checks_nan() { return anomaly_nan_.load(std::memory_order_relaxed); }
void set_anomaly(bool enabled, bool check_nan) {
  anomaly_ = enabled;
  anomaly_nan_ = check_nan;
}

Node::Node(SourceMark line) : sequence_nr(sequence_++), mark(line) {
  if (STRATA_UNLIKELY(anomaly_enabled()) && take_stack_text) forward_trace = take_stack_text();
}

uint64_t Node::current_sequence() { return sequence_; }

Node::~Node() {
  if (pyobj && forget_python_node) forget_python_node(pyobj);
  forget_stream(*this);
}

// A chain of nodes would be destroyed by as deep a recursion; a thread's outermost destroy works through a list.
namespace {
thread_local Node* dead_ STRATA_HOT_TLS = nullptr;
thread_local bool reaping_ STRATA_HOT_TLS = false;
}  // namespace

void Node::destroy() {
  next_dead_ = dead_;
  dead_ = this;
  if (reaping_) return;
  reaping_ = true;
  while (Node* node = dead_) {
    dead_ = node->next_dead_;
    delete node;
  }
  reaping_ = false;
}

void Node::add_edge(const Tensor& input) {
  if (input.defined() && needs_grad(input))
    edges.push_back(gradient_edge(input));
  else
    edges.push_back(Edge{});
}

void Node::release_saved() {
  each_saved(nullptr, [](void*, const char*, SavedTensor& saved) { saved.release(); });
}

Node::Hooks& Node::make_hooks() {
  if (!hooks) hooks = std::make_unique<Hooks>();
  return *hooks;
}

int64_t next_hook_id() {
  static std::atomic<int64_t> id{0};
  return ++id;
}

}  // namespace strata
