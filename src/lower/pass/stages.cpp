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
  for (size_t v = 0; v < count; ++v) work[v + 1] = work[v] + stays(p.nodes[v]);
  if (work[count] <= kLong) return found;
  const auto across = crossing(p);
  auto allowed = [&](size_t at) {
    return at < count && across[at].size() <= kFew && std::ranges::none_of(across[at], [&](int v) {
             return rarely[size_t(v)] || p.nodes[size_t(v)].type == DType::Bool;
           });
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

// Copies what a stage needs of the kernel's pass.
class Cutter {
 public:
  Cutter(const Kernel& k, Stages& stages, std::map<int, int>& places, size_t begin)
      : k_(k), stages_(stages), places_(places), begin_(begin) {
    Kernel& own = stage_.kernel;
    own.name = k.name + "_s" + std::to_string(stages.parts.size());
    own.source = k.source;
    own.kind = KernelKind::Pointwise;
    own.dtype = k.dtype;
    own.scalars = k.scalars;
    own.lines = k.lines;
    own.fused = true;
    own.passes.emplace_back();
    own.passes[0].elementwise = true;
  }

  // Keeps a value for later stages.
  void keep(int v) {
    const DType type = pass().nodes[size_t(v)].type;
    const int place = int(stages_.kept.size());
    if (!places_.emplace(v, place).second) return;
    stages_.kept.push_back(type);
    output({"kept_" + std::to_string(place), type}, -1 - place);
    own().stores.push_back({int(stage_.kernel.outputs.size()) - 1, copy(v)});
  }

  void store(const Store& s) {
    const auto at = std::ranges::find(stage_.operands, s.operand);
    size_t place = size_t(at - stage_.operands.begin());
    if (at == stage_.operands.end()) output(k_.outputs[size_t(s.operand)], s.operand);
    Store own_store = s;
    own_store.operand = int(place);
    own_store.value = copy(s.value);
    own().stores.push_back(own_store);
  }

  Stage done() {
    stage_.operands.insert(stage_.operands.end(), inputs_.begin(), inputs_.end());
    return std::move(stage_);
  }

 private:
  const Pass& pass() const { return k_.passes[0]; }
  Pass& own() { return stage_.kernel.passes[0]; }

  void output(const Operand& o, int of) {
    stage_.kernel.outputs.push_back(o);
    stage_.operands.push_back(of);
  }

  uint64_t input(const Operand& o, int of) {
    const auto at = std::ranges::find(inputs_, of);
    if (at != inputs_.end()) return uint64_t(at - inputs_.begin());
    stage_.kernel.inputs.push_back(o);
    inputs_.push_back(of);
    return inputs_.size() - 1;
  }

  int copy(int v) {
    if (const auto known = copied_.find(v); known != copied_.end()) return known->second;
    Node n = pass().nodes[size_t(v)];
    if (stays(n) && size_t(v) < begin_) {
      const int kept = places_.at(v);
      const DType type = n.type;
      n = {.op = Op::Load, .type = type, .origin = n.origin};
      n.imm = input({"kept_" + std::to_string(kept), type}, -1 - kept);
    } else if (n.op == Op::Load) {
      n.imm = input(k_.inputs[n.imm], int(k_.outputs.size() + n.imm));
    }
    for (int& a : n.arg)
      if (a >= 0) a = copy(a);
    own().nodes.push_back(std::move(n));
    return copied_[v] = int(own().nodes.size()) - 1;
  }

  const Kernel& k_;
  Stages& stages_;
  std::map<int, int>& places_;  // of what is kept: which it is
  size_t begin_;
  Stage stage_;
  std::vector<int> inputs_;
  std::map<int, int> copied_;
};

}  // namespace

Stages in_stages(const Kernel& k, const std::vector<char>& rarely) {
  Stages out;
  const Pass& p = k.passes[0];
  const std::vector<size_t> begins = cuts(p, rarely);
  if (begins.size() == 1) {
    out.parts.push_back({k, {}});
    return out;
  }
  const auto across = crossing(p);
  std::map<int, int> places;
  for (size_t i = 0; i < begins.size(); ++i) {
    Cutter stage(k, out, places, begins[i]);
    if (i + 1 < begins.size())
      for (int v : across[begins[i + 1]]) stage.keep(v);
    else
      for (const Store& s : p.stores) stage.store(s);
    out.parts.push_back(stage.done());
  }
  return out;
}

}  // namespace strata::lower
