#include "lower/pass/stages.h"

#include <algorithm>
#include <map>

namespace strata::lower {

namespace {

constexpr size_t kShort = 12, kLong = 32;  // nodes of a stage: at least, and beyond which it is cut where it can be
constexpr size_t kFew = 3;                 // values that are kept from one stage to the next

// Made anew where they are needed: they cost little.
bool stays(const Node& n) { return !n.leaf() && !n.uniform; }

// By place: the values before it that are needed behind it.
std::vector<std::vector<int>> crossing(const Pass& p) {
  const size_t count = p.nodes.size();
  std::vector<size_t> last(count, 0);
  for (size_t v = 0; v < count; ++v)
    for (int a : p.nodes[v].arg)
      if (a >= 0) last[size_t(a)] = v;
  for (const Store& s : p.stores) last[size_t(s.value)] = count;
  for (const Reduction& r : p.reductions)
    for (int v : r.value)
      if (v >= 0) last[size_t(v)] = count;
  std::vector<std::vector<int>> across(count);
  for (size_t v = 0; v < count; ++v)
    if (stays(p.nodes[v]))
      for (size_t at = v + 1; at < count && at <= last[v]; ++at) across[at].push_back(int(v));
  return across;
}

// The first node of each stage.
std::vector<size_t> cuts(const Pass& p, const std::vector<char>& rarely) {
  const size_t count = p.nodes.size();
  std::vector<size_t> work(count + 1, 0), found{0};
  if (!p.carries.empty()) return found;
  for (size_t v = 0; v < count; ++v) work[v + 1] = work[v] + stays(p.nodes[v]);
  if (work[count] <= kLong) return found;
  const auto across = crossing(p);
  auto allowed = [&](size_t at) {
    return at < count && across[at].size() <= kFew &&
           std::ranges::none_of(
               across[at], [&](int v) { return rarely[size_t(v)] || p.nodes[size_t(v)].type == DType::Bool; });
  };
  for (size_t at = 1; at < count; ++at) {
    if (!allowed(at) || work[at] - work[found.back()] < kShort || work[count] - work[at] < kShort) continue;
    // The best of the places up to a stage's most nodes: few values, then late.
    size_t best = at;
    for (size_t later = at + 1; later < count && work[later] - work[found.back()] <= kLong; ++later)
      if (allowed(later) && work[count] - work[later] >= kShort && across[later].size() <= across[best].size())
        best = later;
    found.push_back(at = best);
    if (work[count] - work[best] <= kLong) break;
  }
  return found;
}

// Copies what a part needs of a pass.
class Cutter {
 public:
  Cutter(const Pass& pass, size_t begin, std::map<int, int>& places) : pass_(pass), begin_(begin), places_(places) {}

  // Keeps a value for later parts.
  void keep(int v, std::vector<DType>& kept) {
    if (!places_.emplace(v, int(kept.size())).second) return;
    out_.stores.push_back({int(kept.size()), copy(v), 0, true});
    kept.push_back(pass_.nodes[size_t(v)].type);
  }

  Pass between() {
    out_.elementwise = true;
    return std::move(out_);
  }

  // The last part, with all effects of the pass.
  Pass end() {
    for (Store s : pass_.stores) s.value = copy(s.value), out_.stores.push_back(s);
    for (Reduction r : pass_.reductions) {
      for (int& v : r.value)
        if (v >= 0) v = copy(v);
      out_.reductions.push_back(r);
    }
    out_.elementwise = pass_.elementwise;
    return std::move(out_);
  }

 private:
  int copy(int v) {
    if (const auto known = copied_.find(v); known != copied_.end()) return known->second;
    Node n = pass_.nodes[size_t(v)];
    if (stays(n) && size_t(v) < begin_)
      n = {.op = Op::Scratch, .type = n.type, .imm = uint64_t(places_.at(v)), .origin = n.origin};
    for (int& a : n.arg)
      if (a >= 0) a = copy(a);
    out_.nodes.push_back(std::move(n));
    return copied_[v] = int(out_.nodes.size()) - 1;
  }

  const Pass& pass_;
  size_t begin_;
  std::map<int, int>& places_;  // of what is kept: in which row
  std::map<int, int> copied_;
  Pass out_;
};

// A part of a pointwise kernel's pass as a kernel, to which what is kept is one more operand.
class Part {
 public:
  Part(const Kernel& k, const std::vector<DType>& kept, const std::string& name) : k_(k), kept_(kept) {
    Kernel& own = stage_.kernel;
    own.name = name;
    own.source = k.source;
    own.dtype = k.dtype;
    own.scalars = k.scalars;
    own.lines = k.lines;
    own.fused = true;
  }

  Stage of(Pass pass) {
    Kernel& own = stage_.kernel;
    for (Node& n : pass.nodes) {
      if (n.op != Op::Load && n.op != Op::Scratch) continue;
      n.imm = n.op == Op::Load ? place(int(k_.outputs.size() + n.imm), inputs_, own.inputs)
                               : place(-1 - int(n.imm), inputs_, own.inputs);
      n.op = Op::Load;
    }
    for (Store& s : pass.stores) {
      s.operand = int(place(s.scratch ? -1 - s.operand : s.operand, stage_.operands, own.outputs));
      s.scratch = false;
    }
    own.passes.push_back(std::move(pass));
    stage_.operands.insert(stage_.operands.end(), inputs_.begin(), inputs_.end());
    return std::move(stage_);
  }

 private:
  Operand operand(int which) const {
    if (which < 0) return {"kept_" + std::to_string(-1 - which), kept_[size_t(-1 - which)]};
    return size_t(which) < k_.outputs.size() ? k_.outputs[size_t(which)] : k_.inputs[size_t(which) - k_.outputs.size()];
  }

  uint64_t place(int which, std::vector<int>& list, std::vector<Operand>& operands) const {
    const auto at = std::ranges::find(list, which);
    if (at != list.end()) return uint64_t(at - list.begin());
    list.push_back(which);
    operands.push_back(operand(which));
    return list.size() - 1;
  }

  const Kernel& k_;
  const std::vector<DType>& kept_;
  Stage stage_;
  std::vector<int> inputs_;
};

}  // namespace

std::vector<Pass> cut_pass(const Pass& p, const std::vector<char>& rarely, std::vector<DType>& kept) {
  const std::vector<size_t> begins = cuts(p, rarely);
  if (begins.size() == 1) return {p};
  const auto across = crossing(p);
  std::map<int, int> places;
  std::vector<Pass> out;
  for (size_t i = 0; i < begins.size(); ++i) {
    Cutter part(p, begins[i], places);
    if (i + 1 < begins.size())
      for (int v : across[begins[i + 1]]) part.keep(v, kept);
    out.push_back(i + 1 < begins.size() ? part.between() : part.end());
  }
  return out;
}

Stages in_stages(const Kernel& k, const std::vector<char>& rarely) {
  Stages out;
  std::vector<Pass> passes = cut_pass(k.passes[0], rarely, out.kept);
  if (passes.size() == 1) {
    out.parts.push_back({k, {}});
    return out;
  }
  for (Pass& pass : passes)
    out.parts.push_back(Part(k, out.kept, k.name + "_s" + std::to_string(out.parts.size())).of(std::move(pass)));
  return out;
}

}  // namespace strata::lower
