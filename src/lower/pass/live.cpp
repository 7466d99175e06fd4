#include "lower/pass/live.h"

namespace strata::lower {

void keep_live(const Graph& graph, Nest& nest) {
  std::vector<char> used(graph.nodes.size(), 0);
  for (const NestStore& s : nest.stores)
    for (int v : {s.offset, s.value, s.imaginary, s.guard})
      if (v >= 0) used[size_t(v)] = 1;
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    if (!used[v]) continue;
    for (int a : graph.nodes[v].arg)
      if (a >= 0) used[size_t(a)] = 1;
    if (graph.nodes[v].op == Op::Reduced)
      for (int a : graph.reductions[graph.nodes[v].imm].reads())
        if (a >= 0) used[size_t(a)] = 1;
    if (graph.nodes[v].op == Op::Carried)
      for (int a : graph.carries[graph.nodes[v].imm].uses()) used[size_t(a)] = 1;
  }
  std::vector<int> place(graph.nodes.size(), -1), number(graph.reductions.size(), -1);
  std::vector<int> carry(graph.carries.size(), -1);
  nest.nodes.clear();
  nest.reductions.clear();
  nest.carries.clear();
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    if (!used[v]) continue;
    Node n = graph.nodes[v];
    for (int& a : n.arg)
      if (a >= 0) a = place[size_t(a)];
    if (n.op == Op::Reduced) {
      int& to = number[n.imm];
      if (to < 0) {
        Reduction r = graph.reductions[n.imm];
        for (int* a : r.nodes())
          if (*a >= 0) *a = place[size_t(*a)];
        to = int(nest.reductions.size());
        nest.reductions.push_back(std::move(r));
      }
      n.imm = uint64_t(to);
    }
    if (n.op == Op::State || n.op == Op::Carried) {
      int& to = carry[n.imm];
      if (to < 0) {
        to = int(nest.carries.size());
        nest.carries.push_back(graph.carries[n.imm]);
      }
      n.imm = uint64_t(to);
    }
    place[v] = int(nest.nodes.size());
    nest.nodes.push_back(std::move(n));
  }
  for (Carry& c : nest.carries) {
    for (std::vector<int>* all : {&c.start, &c.next})
      for (int& v : *all) v = place[size_t(v)];
    if (c.going >= 0) c.going = place[size_t(c.going)];
  }
  for (NestStore& s : nest.stores)
    for (int* v : {&s.offset, &s.value, &s.imaginary, &s.guard})
      if (*v >= 0) *v = place[size_t(*v)];
}

}  // namespace strata::lower
