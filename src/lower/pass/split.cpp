// Graph -> passes. Level of a value: how many reductions it waits for. A pass makes the reductions of its level; the
// last one writes the outputs. What a later pass needs again and is dear is kept in a scratch row, the rest is redone.
#include <algorithm>
#include <map>

#include "lower/ir/ir.h"

namespace strata::lower {
namespace {

class Splitter {
 public:
  Splitter(const Graph& g, Kernel& k) : g_(g), kernel_(k), level_(g.nodes.size(), 0) {
    for (size_t v = 0; v < g.nodes.size(); ++v) {
      const Node& n = g.nodes[v];
      if (n.op == Op::Reduced) level_[v] = reduction_level(g.reductions[n.imm]) + 1;
      for (int a : n.arg)
        if (a >= 0) level_[v] = std::max(level_[v], level_[a]);
      if (n.op == Op::Carried)
        for (int a : g.carries[n.imm].uses()) level_[v] = std::max(level_[v], level_[size_t(a)]);
    }
  }

  void run(const std::vector<std::array<int, 2>>& outputs) {
    int last = 0;
    for (const auto& o : outputs)
      for (int v : o)
        if (v >= 0) last = std::max(last, level_[v]);
    mark_used(outputs);
    number_.assign(g_.reductions.size(), -1);
    int count = 0;
    for (int p = 0; p < last; ++p)
      for (size_t r = 0; r < g_.reductions.size(); ++r)
        if (used_[r] && reduction_level(g_.reductions[r]) == p) number_[r] = count++;
    kernel_.passes.resize(last + 1);
    computed_.assign(g_.nodes.size(), -1);
    for (int p = 0; p <= last; ++p) {
      pass_ = p;
      at_.assign(g_.nodes.size(), -1);
      Pass& pass = kernel_.passes[p];
      if (p == last) {
        for (size_t k = 0; k < outputs.size(); ++k) {
          if (!kernel_.outputs[k].per_row) pass.elementwise = true;
          for (uint8_t part = 0; part < 2; ++part)
            if (outputs[k][part] >= 0) pass.stores.push_back({int(k), place(outputs[k][part]), part, false});
        }
        continue;
      }
      for (size_t r = 0; r < g_.reductions.size(); ++r) {
        if (!used_[r] || reduction_level(g_.reductions[r]) != p) continue;
        Reduction reduction = g_.reductions[r];
        for (int& v : reduction.value)
          if (v >= 0) v = place(v);
        pass.reductions.push_back(reduction);
      }
    }
    for (size_t k = 0; k < outputs.size(); ++k)
      STRATA_CHECK_VALUE(!kernel_.outputs[k].per_row || g_.node(outputs[k][0]).uniform, kernel_.name, ": output '",
                         kernel_.outputs[k].name, "' has one value per row, but its expression has one per element");
  }

 private:
  int reduction_level(const Reduction& r) const {
    int level = level_[r.value[0]];
    return r.value[1] >= 0 ? std::max(level, level_[r.value[1]]) : level;
  }

  void mark_used(const std::vector<std::array<int, 2>>& outputs) {
    used_.assign(g_.reductions.size(), false);
    std::vector<bool> seen(g_.nodes.size(), false);
    std::vector<int> todo;
    for (const auto& o : outputs) todo.insert(todo.end(), o.begin(), o.end());
    while (!todo.empty()) {
      int v = todo.back();
      todo.pop_back();
      if (v < 0 || seen[v]) continue;
      seen[v] = true;
      const Node& n = g_.node(v);
      todo.insert(todo.end(), n.arg.begin(), n.arg.end());
      if (n.op == Op::Carried)
        for (int a : g_.carries[n.imm].uses()) todo.push_back(a);
      if (n.op != Op::Reduced) continue;
      used_[n.imm] = true;
      todo.insert(todo.end(), g_.reductions[n.imm].value.begin(), g_.reductions[n.imm].value.end());
    }
  }

  // Operations per element to make v again; divisions and calls weigh more.
  int cost(int v) {
    std::vector<int> todo{v}, seen;
    int sum = 0;
    while (!todo.empty() && sum <= kDear) {
      int w = todo.back();
      todo.pop_back();
      const Node& n = g_.node(w);
      if (n.uniform || std::find(seen.begin(), seen.end(), w) != seen.end()) continue;
      seen.push_back(w);
      if (n.leaf()) continue;
      sum += n.op == Op::Carried ? kDear + 1 : n.op == Op::Div || n.op == Op::Sqrt || n.op == Op::Call ? 6 : 1;
      for (int a : n.arg)
        if (a >= 0) todo.push_back(a);
    }
    return sum;
  }

  // The scratch row that holds v, made in the pass that computed it first; -1 if it is better computed again.
  int scratch_row(int v) {
    const Node& n = g_.node(v);
    if (computed_[v] < 0 || computed_[v] == pass_ || n.uniform || n.leaf() || n.type == DType::Bool) return -1;
    if (itemsize(n.type) > itemsize(traits(kernel_.dtype).compute)) return -1;
    if (auto at = rows_.find(v); at != rows_.end()) return at->second;
    if (cost(v) <= kDear) return -1;
    int row = int(kernel_.scratch.size());
    kernel_.scratch.push_back(n.type);
    kernel_.passes[computed_[v]].stores.push_back({row, placed_[v], 0, true});
    return rows_[v] = row;
  }

  // Puts v and what it needs into the current pass; gives its place there.
  int place(int v) {
    if (at_[v] >= 0) return at_[v];
    Node n = g_.node(v);
    if (int row = scratch_row(v); row >= 0) {
      n.op = Op::Scratch;
      n.arg = {-1, -1, -1};
      n.imm = row;
    }
    if (n.op == Op::Reduced) n.imm = number_[n.imm];
    for (int& a : n.arg)
      if (a >= 0) a = place(a);
    if (n.op == Op::State || n.op == Op::Carried) n.imm = carry(n);
    std::vector<Node>& nodes = kernel_.passes[pass_].nodes;
    nodes.push_back(n);
    at_[v] = int(nodes.size()) - 1;
    if (computed_[v] < 0) {
      computed_[v] = pass_;
      placed_[v] = at_[v];
    }
    return at_[v];
  }

  // The number that a carry has in the current pass, to which the value at its end brings what it needs.
  uint64_t carry(const Node& n) {
    std::vector<Carry>& carries = kernel_.passes[pass_].carries;
    auto [at, fresh] = carry_.emplace(std::pair(pass_, n.imm), carries.size());
    const uint64_t number = at->second;
    if (fresh) carries.emplace_back();
    if (n.op == Op::State || !carries[number].start.empty()) return number;
    Carry c = g_.carries[n.imm];
    for (std::vector<int>* all : {&c.start, &c.next})
      for (int& v : *all) v = place(v);
    c.going = place(c.going);
    kernel_.passes[pass_].carries[number] = std::move(c);
    return number;
  }

  static constexpr int kDear = 8;
  const Graph& g_;
  Kernel& kernel_;
  std::vector<int> level_, number_, computed_, at_;
  std::map<int, int> rows_, placed_;
  std::map<std::pair<int, uint64_t>, uint64_t> carry_;
  std::vector<bool> used_;
  int pass_ = 0;
};

}  // namespace

void split_passes(const Graph& g, const std::vector<std::array<int, 2>>& outputs, Kernel& kernel) {
  Splitter(g, kernel).run(outputs);
#ifndef NDEBUG
  verify(kernel);
#endif
}

}  // namespace strata::lower
