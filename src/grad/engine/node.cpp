#include "grad/engine/node.h"

#include <algorithm>
#include <atomic>

#include "grad/engine/saved_tensor.h"
#include "grad/engine/streams.h"
#include "grad/engine/variable.h"

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
  delete hooks();
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
  if (Hooks* found = hooks()) return *found;
  Hooks *made = new Hooks, *before = nullptr;
  if (hooks_.compare_exchange_strong(before, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *before;
}

static std::mutex hook_lock;

template <class Hook>
void HookList<Hook>::add(Hook hook) {
  std::lock_guard<std::mutex> hold(hook_lock);
  hooks_.push_back(std::move(hook));
  ever_.store(true, std::memory_order_release);
}

template <class Hook>
std::optional<Hook> HookList<Hook>::take(int64_t id) {
  std::lock_guard<std::mutex> hold(hook_lock);
  const auto at = std::find_if(hooks_.begin(), hooks_.end(), [id](const Hook& h) { return h.id == id; });
  if (at == hooks_.end()) return {};
  std::optional<Hook> taken(std::move(*at));
  hooks_.erase(at);
  return taken;
}

template <class Hook>
std::vector<Hook> HookList<Hook>::now() const {
  if (!ever_.load(std::memory_order_acquire)) return {};
  std::lock_guard<std::mutex> hold(hook_lock);
  return hooks_;
}

template <class Hook>
bool HookList<Hook>::empty() const {
  if (!ever_.load(std::memory_order_acquire)) return true;
  std::lock_guard<std::mutex> hold(hook_lock);
  return hooks_.empty();
}

template class HookList<TensorHook>;
template class HookList<NodePreHook>;
template class HookList<NodePostHook>;

int64_t next_hook_id() {
  static std::atomic<int64_t> id{0};
  return ++id;
}

}  // namespace strata
