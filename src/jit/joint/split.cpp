#include "jit/joint/split.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>

#include "ir/effect.h"
#include "jit/compile/launches.h"

namespace strata::jit {

namespace {

// Edmonds' and Karp's maximum flow by shortest paths (1972). Ends with the vertices that the source still reaches.
class Flow {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;
  explicit Flow(size_t vertices) : edges_(vertices) {}

  void edge(int from, int to, int64_t capacity) {
    edges_[size_t(from)].push_back(int(all_.size()));
    all_.push_back({to, capacity});
    edges_[size_t(to)].push_back(int(all_.size()));
    all_.push_back({from, 0});
  }

  std::vector<char> reached_after(int source, int sink) {
    while (true) {
      std::vector<int> by(edges_.size(), -1);
      std::vector<char> seen(edges_.size());
      std::queue<int> todo;
      todo.push(source);
      seen[size_t(source)] = true;
      while (!todo.empty() && !seen[size_t(sink)]) {
        const int v = todo.front();
        todo.pop();
        for (int e : edges_[size_t(v)]) {
          const int w = all_[size_t(e)].to;
          if (seen[size_t(w)] || all_[size_t(e)].left == 0) continue;
          seen[size_t(w)] = true;
          by[size_t(w)] = e;
          todo.push(w);
        }
      }
      if (!seen[size_t(sink)]) return seen;
      int64_t least = kNever;
      for (int v = sink; v != source; v = all_[size_t(by[size_t(v)] ^ 1)].to)
        least = std::min(least, all_[size_t(by[size_t(v)])].left);
      STRATA_INTERNAL(least < kNever, "a joint graph whose backward needs what cannot be saved");
      for (int v = sink; v != source; v = all_[size_t(by[size_t(v)] ^ 1)].to) {
        all_[size_t(by[size_t(v)])].left -= least;
        all_[size_t(by[size_t(v)] ^ 1)].left += least;
      }
    }
  }

 private:
  struct Edge {
    int to;
    int64_t left;
  };
  std::vector<std::vector<int>> edges_;
  std::vector<Edge> all_;
};

int64_t bytes_of(const ir::Type& t) {
  int64_t n = itemsize(t.dtype);
  for (const SymInt& s : t.sizes) n *= s.hint();
  return n;
}

// Takes over values and nodes of another graph, numbered anew.
class Builder {
 public:
  explicit Builder(const ir::Graph& from) : from_(from), number_(from.values.size(), ir::kNone) {}

  void param(ir::Id v) { made.body.params.push_back(value(v)); }
  void result(ir::Id v) { made.body.results.push_back(v == ir::kNone ? v : number_[size_t(v)]); }
  void node(const ir::Node& n) {
    ir::Node copy = n;
    for (ir::Arg& a : copy.args)
      for (ir::Id& v : a.values)
        if (v != ir::kNone) v = number_[size_t(v)];
    for (ir::Block& b : copy.blocks) block(b);
    for (ir::Id& v : copy.results)
      if (v != ir::kNone) v = value(v);
    made.body.nodes.push_back(std::move(copy));
  }
  bool has(ir::Id v) const { return number_[size_t(v)] != ir::kNone; }

  ir::Graph made;

 private:
  void block(ir::Block& b) {
    for (ir::Id& v : b.params) v = value(v);
    std::vector<ir::Node> inner;
    std::swap(inner, made.body.nodes);
    for (const ir::Node& n : b.nodes) node(n);
    std::swap(inner, made.body.nodes);
    b.nodes = std::move(inner);
    for (ir::Id& v : b.results)
      if (v != ir::kNone) v = number_[size_t(v)];
  }
  ir::Id value(ir::Id v) {
    return number_[size_t(v)] = made.add(from_.values[size_t(v)].type, from_.values[size_t(v)].name);
  }
  const ir::Graph& from_;
  std::vector<ir::Id> number_;
};

class Splitter {
 public:
  Splitter(const ir::Graph& joint, size_t forward_nodes, size_t tangents, size_t outputs, ArrayRef<int> learned)
      : g_(joint), forward_(forward_nodes), tangents_(tangents), outputs_(outputs) {
    maker_.assign(g_.values.size(), -1);
    for (size_t i = 0; i < g_.body.nodes.size(); ++i)
      for (ir::Id v : g_.body.nodes[i].results)
        if (v != ir::kNone) maker_[size_t(v)] = int(i);
    own_ = g_.inputs() - tangents_;
    param_.assign(g_.values.size(), -1);
    for (size_t i = 0; i < g_.body.params.size(); ++i) param_[size_t(g_.body.params[i])] = int(i);
    for (int p : learned) read_.insert(g_.body.params[size_t(p) < own_ ? size_t(p) : size_t(p) + tangents_]);
  }

  Halves run() {
    find_backward();
    find_cheap();
    const std::vector<ir::Id> saved = cut();
    return build(saved);
  }

 private:
  bool is_tangent(ir::Id v) const {
    const int p = param_[size_t(v)];
    return p >= int(own_) && p < int(own_ + tangents_);
  }
  // Of the forward: made by it, or a parameter that is no tangent.
  bool is_forward(ir::Id v) const {
    return maker_[size_t(v)] >= 0 ? size_t(maker_[size_t(v)]) < forward_ : !is_tangent(v);
  }
  bool is_constant(ir::Id v) const {
    return maker_[size_t(v)] >= 0 && g_.body.nodes[size_t(maker_[size_t(v)])].kind == ir::Node::Constant;
  }

  // Values of the forward that nodes of the backward, or its results, read.
  void find_backward() {
    for (size_t i = forward_; i < g_.body.nodes.size(); ++i)
      ir::each_use(g_.body.nodes[i], [&](ir::Id v) {
        if (is_forward(v) && !is_constant(v)) needed_.insert(v);
      });
    for (size_t r = outputs_; r < g_.body.results.size(); ++r)
      if (const ir::Id v = g_.body.results[r]; v != ir::kNone && is_forward(v) && !is_constant(v)) needed_.insert(v);
    for (ir::Id v : needed_) {
      while (maker_[size_t(v)] >= 0) {
        const ir::Node& made = g_.body.nodes[size_t(maker_[size_t(v)])];
        if (made.kind != ir::Node::Call || !ir::is_view(*made.op) || made.args[0].values.empty()) break;
        v = made.args[0].values[0];
      }
      if (param_[size_t(v)] >= 0) read_.insert(v);
    }
  }

  // Nodes whose launches go element by element, or that have none; none where the forward writes what is there.
  void find_cheap() {
    cheap_.assign(g_.body.nodes.size(), true);
    const LaunchList list = lower(g_);
    for (const Launch& l : list.launches)
      if (l.node && l.kind != Launch::Pointwise && l.kind != Launch::Copy && l.kind != Launch::Fill)
        cheap_[size_t(l.node - g_.body.nodes.data())] = false;
    for (int p : written_params(list))
      if (!is_tangent(g_.body.params[size_t(p)])) written_.push_back(p < int(own_) ? p : p - int(tangents_));
    bool writes = false;
    for (size_t i = 0; i < forward_; ++i)
      writes |= g_.body.nodes[i].kind == ir::Node::Call && g_.body.nodes[i].op->schema().writes();
    if (writes) cheap_.assign(cheap_.size(), false);
  }

  std::vector<ir::Id> cut() {
    // Vertices: 2v is a value before it is kept, 2v + 1 after.
    const int source = int(2 * g_.values.size()), sink = source + 1;
    Flow flow(2 * g_.values.size() + 2);
    for (size_t v = 0; v < g_.values.size(); ++v) {
      if (!is_forward(ir::Id(v)) || is_constant(ir::Id(v))) continue;
      const int made = maker_[v];
      if (made < 0 && param_[v] < 0) continue;
      // What the caller holds anyway costs next to nothing.
      const int64_t held = read_.contains(ir::Id(v)) ? 1 : Flow::kNever;
      flow.edge(int(2 * v), int(2 * v + 1), made < 0 ? held : bytes_of(g_.values[v].type) + 1);
      if (made < 0 || !cheap_[size_t(made)]) flow.edge(source, int(2 * v), Flow::kNever);
      if (made >= 0 && cheap_[size_t(made)])
        ir::each_use(g_.body.nodes[size_t(made)], [&](ir::Id a) {
          if (!is_constant(a)) flow.edge(2 * a + 1, int(2 * v), Flow::kNever);
        });
      if (needed_.contains(ir::Id(v))) flow.edge(int(2 * v + 1), sink, Flow::kNever);
    }
    const std::vector<char> reached = flow.reached_after(source, sink);
    std::vector<ir::Id> saved;
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (reached[2 * v] && !reached[2 * v + 1]) saved.push_back(ir::Id(v));
    return saved;
  }

  Halves build(const std::vector<ir::Id>& saved) {
    Halves h;
    h.written = written_;
    Builder forward(g_), backward(g_);
    for (size_t p = 0; p < g_.body.params.size(); ++p)
      if (!is_tangent(g_.body.params[p])) forward.param(g_.body.params[p]);
    for (size_t i = 0; i < forward_; ++i) forward.node(g_.body.nodes[i]);
    // Numbers that only the backward's recording met first.
    for (size_t r = 0; r < outputs_; ++r) {
      const ir::Id v = g_.body.results[r];
      if (v != ir::kNone && !forward.has(v)) forward.node(g_.body.nodes[size_t(maker_[size_t(v)])]);
      forward.result(v);
    }
    for (ir::Id v : saved) {
      forward.result(v);
      const int p = param_[size_t(v)];
      h.saved_param.push_back(p < int(own_) ? p : p - int(tangents_));
      backward.param(v);
    }
    for (size_t t = 0; t < tangents_; ++t) backward.param(g_.body.params[own_ + t]);
    // What is computed again, in the order of the forward.
    std::vector<char> again(forward_);
    std::vector<ir::Id> todo(needed_.begin(), needed_.end());
    for (size_t i = forward_; i < g_.body.nodes.size(); ++i)
      ir::each_use(g_.body.nodes[i], [&](ir::Id v) {
        if (is_constant(v)) todo.push_back(v);
      });
    while (!todo.empty()) {
      const ir::Id v = todo.back();
      todo.pop_back();
      const int made = maker_[size_t(v)];
      if (backward.has(v) || made < 0 || size_t(made) >= forward_ || again[size_t(made)]) continue;
      again[size_t(made)] = true;
      ir::each_use(g_.body.nodes[size_t(made)], [&](ir::Id a) { todo.push_back(a); });
    }
    for (size_t i = 0; i < g_.body.nodes.size(); ++i)
      if (i >= forward_ || again[i]) backward.node(g_.body.nodes[i]);
    for (size_t r = outputs_; r < g_.body.results.size(); ++r) backward.result(g_.body.results[r]);
    h.forward = std::move(forward.made);
    h.forward.captured = g_.captured;
    h.backward = std::move(backward.made);
    return h;
  }

  const ir::Graph& g_;
  size_t forward_, tangents_, outputs_, own_;
  std::vector<int> maker_, param_;
  std::vector<char> cheap_;
  std::set<ir::Id> needed_;
  std::set<ir::Id> read_;  // parameters that may be saved
  std::vector<int> written_;
};

}  // namespace

Halves split(const ir::Graph& joint, size_t forward_nodes, size_t tangents, size_t outputs, ArrayRef<int> learned) {
  return Splitter(joint, forward_nodes, tangents, outputs, learned).run();
}

}  // namespace strata::jit
