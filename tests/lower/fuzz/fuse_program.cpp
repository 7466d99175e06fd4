// A program with as many of its values inlined as can be.
#include <algorithm>
#include <bit>
#include <regex>
#include <sstream>

#include "lower/fuzz/program.h"
#include "lower/pass/fuse.h"

namespace strata::lower::fuzz {
namespace {

constexpr size_t kMostNodes = 500;

}  // namespace

const Tensor& Program::tensor(const std::string& name) const {
  for (const Tensor& t : inputs)
    if (t.name == name) return t;
  for (const Value& v : values)
    for (const Tensor& t : v.outputs)
      if (t.name == name) return t;
  throw std::runtime_error("no tensor " + name);
}

int Program::maker(const std::string& name) const {
  for (size_t v = 0; v < values.size(); ++v)
    for (const Tensor& t : values[v].outputs)
      if (t.name == name) return int(v);
  return -1;
}

bool Program::read_later(size_t value) const {
  for (size_t v = value + 1; v < values.size(); ++v)
    for (const NestOperand& o : values[v].nest.operands)
      if (!o.output && maker(o.name) == int(value)) return true;
  return false;
}

Program window(const Program& whole, size_t first, size_t past) {
  Program out = whole;
  out.values.assign(whole.values.begin() + long(first), whole.values.begin() + long(past));
  out.inputs.clear();
  std::set<std::string> seen;
  for (const Value& v : out.values)
    for (const NestOperand& o : v.nest.operands)
      if (!o.output && out.maker(o.name) < 0 && seen.insert(o.name).second) out.inputs.push_back(whole.tensor(o.name));
  return out;
}

FusedProgram fuse_program(const Program& program) {
  FusedProgram out;
  const int count = int(program.values.size());
  std::vector<char> wanted(size_t(count), 0);
  for (int v = 0; v < count; ++v) wanted[size_t(v)] = !program.read_later(size_t(v));
  for (int root = count - 1; root >= 0; --root) {
    if (!wanted[size_t(root)]) continue;
    Value value = program.values[size_t(root)];
    value.nest.name += "_fused";
    std::set<int> refused;
    for (;;) {
      int next = -1;  // the latest, so that what it reads of the others is inlined once
      for (const NestOperand& o : value.nest.operands)
        if (const int v = o.output ? -1 : program.maker(o.name); v > next && !refused.count(v)) next = v;
      if (next < 0) break;
      const Value& producer = program.values[size_t(next)];
      std::string reason = why_not(value.nest, producer.nest);
      if (reason.empty() && value.nest.nodes.size() + producer.nest.nodes.size() > kMostNodes)
        reason = "it grows too long";
      if (!reason.empty()) {
        ++out.refused[std::regex_replace(reason, std::regex("[vx][0-9_]+"), "it")];
        refused.insert(next);
        wanted[size_t(next)] = 1;
        continue;
      }
      Fused fused = fuse(value.nest, producer.nest, value.nest.name);
      std::vector<int> sizes;
      for (size_t r = 0; r < fused.nest.ranges.size(); ++r)
        sizes.push_back(fused.of_consumer[r] >= 0 ? value.sizes[size_t(fused.of_consumer[r])]
                                                  : producer.sizes[size_t(fused.of_producer[r])]);
      value.nest = std::move(fused.nest);
      value.sizes = std::move(sizes);
      ++out.inlined;
    }
    out.values.push_back(std::move(value));
  }
  std::reverse(out.values.begin(), out.values.end());
  return out;
}

std::string describe(const Program& program) {
  std::ostringstream out;
  auto dims = [](const Tensor& t) {
    std::string text;
    for (int d : t.dims) text += (text.empty() ? "" : ", ") + std::string(1, char('A' + d));
    return "[" + text + "]";
  };
  for (const Tensor& t : program.inputs)
    out << "  " << t.name << dims(t) << ' ' << t.dtype
        << (t.places_in >= 0 ? std::string(", places in ") + char('A' + t.places_in) : "") << '\n';
  for (const Value& v : program.values) {
    out << "  ";
    for (const Tensor& t : v.outputs) out << t.name << dims(t) << ' ' << t.dtype << "  ";
    out << "by " << v.says << '\n';
  }
  return out.str();
}

}  // namespace strata::lower::fuzz
