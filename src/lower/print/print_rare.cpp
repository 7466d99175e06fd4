// Rare nodes with one condition: `if (any lane) { their slow parts }`.
#include <algorithm>
#include <map>
#include <utility>

#include "lower/print/print_c.h"

namespace strata::lower {

// Vectors of 64-bit integers are multiplied in pieces: many instructions, of which none is needed most of the time. As
// the text of one lane they make kernels of sin and cos compile in two thirds of the time.
bool BodyPrinter::goes_lane_by_lane(int group) const {
  const int condition = pass_.nodes[size_t(groups_[size_t(group)][0])].arg[0];
  if (!vector_ || pass_.nodes[size_t(condition)].uniform) return false;
  bool multiplies = false;
  for (size_t v = 0; v < pass_.nodes.size(); ++v) {
    const Node& n = pass_.nodes[v];
    if (!inside_[size_t(group)][v] || n.op == Op::Const) continue;
    if (n.leaf() || n.op == Op::Call || n.op == Op::Carried) return false;
    multiplies |= n.op == Op::Mul && is_integral(n.type) && traits(n.type).bits == 64;
  }
  return multiplies;
}

std::vector<char> BodyPrinter::lane_by_lane() const {
  std::vector<char> alone(pass_.nodes.size(), 0);
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (!goes_lane_by_lane(int(group))) continue;
    for (size_t v = 0; v < alone.size(); ++v) alone[v] |= inside_[group][v];
  }
  return alone;
}

std::vector<char> BodyPrinter::rarely() const {
  std::vector<char> out(owner_.size());
  std::ranges::transform(owner_, out.begin(), [](int group) { return group >= 0; });
  return out;
}

// What the text reads and what it makes lie in arrays meanwhile. It is a function of its own: what is hoisted out of
// its loop would take registers from the lanes' most frequent way.
void BodyPrinter::emit_lanes(int group, const std::vector<int>& owned) {
  const std::vector<int>& members = groups_[size_t(group)];
  const std::vector<char>& inside = inside_[size_t(group)];
  const int condition = pass_.nodes[size_t(members[0])].arg[0];
  const std::string lanes = wide_ ? std::to_string(wide_) : "LANES";
  std::string parameters, arguments;
  std::vector<char> kept(pass_.nodes.size(), 0);
  auto pass = [&](const std::string& type, const std::string& name) {
    const char* separator = arguments.empty() ? "" : ", ";
    parameters += separator + type + name, arguments += separator + name;
  };
  auto keep = [&](int v, bool written = false) {
    if (v < 0 || inside[size_t(v)] || kept[size_t(v)]) return;
    const Node& n = pass_.nodes[size_t(v)];
    if (n.op == Op::Const) return;
    kept[size_t(v)] = 1;
    const std::string& name = names_[size_t(v)];
    if (n.uniform) return pass(type(n.type, false) + " ", name);
    const DType lane = n.type == DType::Bool ? mask_lane(mask_bits(v)) : n.type;
    line(type(lane, false) + " " + name + "_of[" + lanes + "];");
    line("*(" + type(lane, true) + "_u*)" + name + "_of = " + name + ";");
    pass((written ? "" : "const ") + type(lane, false) + "* restrict ", name + "_of");
  };
  keep(condition);
  for (size_t v = 0; v < pass_.nodes.size(); ++v)
    if (inside[v])
      for (int a : pass_.nodes[v].arg) keep(a);
  for (int m : members) keep(pass_.nodes[size_t(m)].arg[1]), keep(m, true);
  std::string before = std::move(out_);
  const int indent = std::exchange(indent_, 4);
  of_lane_ = group;
  out_ = "  ANY_ORDER\n  for (int lane = 0; lane < " + lanes + "; lane++) {\n";
  line("if (!" + names_[size_t(condition)] + "_of[lane]) continue;");
  for (int v : owned) emit(v);
  for (int m : members)
    line(names_[size_t(m)] + "_of[lane] = " + ref(pass_.nodes[size_t(m)].arg[1], false) + ";",
         pass_.nodes[size_t(m)].origin);
  of_lane_ = -1;
  indent_ = indent;
  const std::string function = needs_.function("(" + parameters + ") {\n" + out_ + "  }\n}\n");
  out_ = std::move(before);
  line(function + "(" + arguments + ");");
  for (int m : members)
    line(names_[size_t(m)] + " = *(" + type(pass_.nodes[size_t(m)].type, true) + "_u*)" + names_[size_t(m)] + "_of;");
}

// From a number other than 0 on, up to infinity, floats are integers of a range by their bits, and whether any of
// several vectors lies in one takes one comparison.
std::string BodyPrinter::any_lane(int condition) {
  const Node& n = pass_.nodes[size_t(condition)];
  if (!vector_ || n.uniform) return ref(condition, false);
  if (wide_ && n.arg[1] >= 0 && pass_.nodes[size_t(n.arg[1])].op == Op::Const) {
    const DType t = pass_.nodes[size_t(n.arg[0])].type;
    const uint64_t limit = pass_.nodes[size_t(n.arg[1])].imm, sign = uint64_t(1) << (traits(t).bits - 1);
    const uint64_t infinity = t == DType::F32 ? 0x7f800000 : 0x7ff0000000000000;
    const bool above = (n.op == Op::Gt || n.op == Op::Ge) && limit > 0 && limit < infinity;
    const bool below = (n.op == Op::Lt || n.op == Op::Le) && limit > sign && limit < (sign | infinity);
    if ((t == DType::F32 || t == DType::F64) && (above || below)) {
      const DType whole = t == DType::F32 ? DType::U32 : DType::U64;
      const auto number = [&](uint64_t v) { return literal({Op::Const, whole, {-1, -1, -1}, v}); };
      return helper("any_within", whole, true) + "((" + type(whole, true) + ")" + ref(n.arg[0], true) + ", " +
             number(limit) + ", " + number(infinity - (limit & ~sign)) + ")";
    }
  }
  return helper("any", mask_lane(mask_bits(condition)), true) + "(" + names_[size_t(condition)] + ")";
}

void BodyPrinter::emit_group(int group) {
  const std::vector<int>& members = groups_[group];
  int condition = pass_.nodes[members[0]].arg[0];
  emit(condition);
  std::vector<int> owned;
  for (size_t v = 0; v < pass_.nodes.size(); ++v)
    if (owner_[v] == group) owned.push_back(int(v));
  for (int m : members) {
    emitted_[m] = 1;
    emit(pass_.nodes[m].arg[2]);
    if (!inside_[group][pass_.nodes[m].arg[1]]) emit(pass_.nodes[m].arg[1]);
  }
  for (size_t v = 0; v < pass_.nodes.size(); ++v)
    for (int a : pass_.nodes[v].arg)
      if (inside_[group][v] && a >= 0 && !inside_[group][a]) emit(a);
  for (int m : members)
    line(type(pass_.nodes[m].type) + " " + names_[m] + " = " + ref(pass_.nodes[m].arg[2], vector_) + ";",
         pass_.nodes[m].origin);
  line("if (RARELY(" + any_lane(condition) + ")) {");
  indent_ += 2;
  if (goes_lane_by_lane(group)) {
    emit_lanes(group, owned);
    indent_ -= 2;
    return line("}");
  }
  for (int v : owned) emit(v);
  for (int m : members) {
    const Node& n = pass_.nodes[m];
    std::string slow = ref(n.arg[1], vector_);
    if (vector_)
      slow = helper("select", n.type, true) + "(" + mask(n.arg[0], traits(n.type).bits) + ", " + slow + ", " +
             names_[m] + ")";
    line(names_[m] + " = " + slow + ";", n.origin);
  }
  indent_ -= 2;
  line("}");
}

// A group: Rare nodes of one condition, none of which needs another. It owns what only its slow parts use.
void BodyPrinter::find_groups() {
  int n = int(pass_.nodes.size());
  std::map<int, int> open;  // condition -> group
  for (int v = 0; v < n; ++v) {
    const Node& node = pass_.nodes[v];
    if (node.op != Op::Rare || node.uniform || node.type == DType::Bool || loops_[size_t(v)]) continue;
    std::vector<char> seen(n, 0);
    std::vector<int> todo{v};
    while (!todo.empty()) {
      int w = todo.back();
      todo.pop_back();
      if (w < 0 || seen[w]) continue;
      seen[w] = 1;
      for (int a : pass_.nodes[w].arg) todo.push_back(a);
    }
    int group = -1;
    if (auto at = open.find(node.arg[0]); at != open.end()) {
      group = at->second;
      for (int m : groups_[group])
        if (seen[m]) group = -1;
    }
    if (group < 0) {
      group = int(groups_.size());
      groups_.emplace_back();
      open[node.arg[0]] = group;
    }
    groups_[group].push_back(v);
    group_of_[v] = group;
  }
  std::vector<char> kept(n, 0);
  for (const Carry& c : pass_.carries)
    for (int v : c.uses()) kept[v] = 1;
  for (const Store& s : pass_.stores) kept[s.value] = 1;
  for (const Reduction& r : pass_.reductions)
    for (int v : r.value)
      if (v >= 0) kept[v] = 1;
  for (int group = 0; group < int(groups_.size()); ++group) {
    std::vector<char> mine(n, 0);
    for (int v = n - 1; v >= 0; --v) {
      const Node& node = pass_.nodes[v];
      if (node.uniform || kept[v] || users_[v].empty()) continue;
      bool all = true;
      for (int u : users_[v]) {
        bool slow = group_of_[u] == group && pass_.nodes[u].arg[1] == v && pass_.nodes[u].arg[0] != v &&
                    pass_.nodes[u].arg[2] != v;
        if (!slow && !mine[u]) all = false;
      }
      if (all) mine[v] = 1;
    }
    inside_.push_back(std::move(mine));
  }
  for (std::vector<char>& inside : inside_)  // a group is wholly inside another or not at all
    for (const std::vector<int>& members : groups_) {
      bool all = std::all_of(members.begin(), members.end(), [&](int m) { return inside[m]; });
      for (int m : members) inside[m] = all;
    }
  for (int v = 0; v < n; ++v)
    for (int group = 0; group < int(groups_.size()) && owner_[v] < 0; ++group)
      if (inside_[group][v]) owner_[v] = group;
}

}  // namespace strata::lower
