// Nodes of the autograd graph: one per recorded operator call. A node maps the gradients of its call's outputs to those
// of its inputs; edges lead to the nodes that made the inputs.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/inline_vec.h"
#include "base/pool.h"
#include "base/span.h"
#include "core/tensor.h"

namespace strata {

class Node;
class SavedTensor;
using Grads = InlineVec<Tensor, 3>;

struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;
  bool valid() const { return bool(node); }
};

// What the engine knows of one output of the recorded call.
struct OutputMeta {
  DimVec sizes;
  DType dtype = DType::F32;
  Device device;
  bool meta = false;

  OutputMeta() = default;
  explicit OutputMeta(const Tensor& t) : sizes(t.sizes()), dtype(t.dtype()), device(t.device()), meta(t.is_meta()) {}
};

struct TensorHook {
  int64_t id;
  uint32_t output_nr;
  bool retains_grad;                        // runs after the others of its tensor
  std::function<Tensor(const Tensor&)> fn;  // undefined result: unchanged
};
struct NodePreHook {
  int64_t id;
  std::function<Grads(const Grads&)> fn;  // of the outputs' gradients; an empty result: unchanged
};
struct NodePostHook {
  int64_t id;
  std::function<Grads(const Grads& inputs, const Grads& outputs)> fn;
};

// Hooks in their order. One thread may run a backward while another adds or removes some: a run takes those that are
// there when it begins. Hooks die outside of the lock, since they may hold tensors and objects of Python.
template <class Hook>
class HookList {
 public:
  void add(Hook hook);
  std::optional<Hook> take(int64_t id);  // removes it
  std::vector<Hook> now() const;
  bool empty() const;

 private:
  std::vector<Hook> hooks_;
  std::atomic<bool> ever_ = false;  // one was added: lists that never had any are read without the lock
};

class Node : public NodeBase {
 public:
  Node() : Node(take_source_mark()) {}
  virtual std::string name() const = 0;
  // Gradients of the outputs in, gradients of the inputs (one per edge) out. Undefined means zero.
  virtual Grads apply(Grads&& grads) = 0;
  // Shows what was saved for backward under its name, tensors of a list x one after the other as "x[]".
  using SavedVisitor = void (*)(void* context, const char* name, SavedTensor& saved);
  virtual void each_saved(void* context, SavedVisitor visit) {}
  // Drops what was saved for backward; a second backward then raises.
  virtual void release_saved();
  virtual bool is_accumulator() const { return false; }

  void add_edge(const Tensor& input);  // to the node of `input`, or an invalid edge where it needs no gradient
  // Whether the gradient of that input is used: it has an edge, to what this backward is asked for.
  bool needs(size_t i) const {
    return edges[i].valid() && (STRATA_LIKELY(!selective_runs.load(std::memory_order_relaxed)) || wanted(edges[i]));
  }

  struct Hooks {
    HookList<TensorHook> tensor;
    HookList<NodePreHook> pre;
    HookList<NodePostHook> post;
  };
  Hooks& make_hooks();
  Hooks* hooks() const { return hooks_.load(std::memory_order_acquire); }  // null: there were never any

  InlineVec<Edge, 3> edges;
  InlineVec<OutputMeta, 1> outputs;
  uint64_t sequence_nr;
  SourceMark mark;            // the line that recorded it
  std::string forward_trace;  // the whole stack, in anomaly mode
  void* pyobj = nullptr;      // weak: the Python object that shows this node

  static uint64_t current_sequence();
  static void* operator new(size_t size) { return SizedPool::take(size); }
  static void operator delete(void* p, size_t size) { SizedPool::give(p, size); }

 protected:
  explicit Node(SourceMark line);
  ~Node() override;
  void destroy() override;  // without recursion, however long the chain

 private:
  static std::atomic<int> selective_runs;  // of all threads, those that are asked for some gradients alone
  static bool wanted(const Edge& edge);
  friend class SelectiveRun;
  std::atomic<Hooks*> hooks_{nullptr};
  Node* next_dead_ = nullptr;
};

// While one lives, Node::needs() asks the thread's run.
class SelectiveRun {
 public:
  SelectiveRun() { ++Node::selective_runs; }
  ~SelectiveRun() { --Node::selective_runs; }
  SelectiveRun(const SelectiveRun&) = delete;
  SelectiveRun& operator=(const SelectiveRun&) = delete;
};

// Hook identifiers are unique in the process.
int64_t next_hook_id();
// Called with Node::pyobj of a dying node.
extern void (*forget_python_node)(void* object);
// The user's stack as text; set by the front end, used in anomaly mode.
extern std::string (*take_stack_text)();
// Node subclasses are made by this: anomaly mode and the line are noted.
template <class N, class... A>
Ref<N> make_node(A&&... args) {
  return Ref<N>(new N(std::forward<A>(args)...));
}

bool anomaly_enabled();
bool anomaly_checks_nan();
void set_anomaly(bool enabled, bool check_nan);

}  // namespace strata
