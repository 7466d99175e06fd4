#include "jit/compile/piece.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "lower/added.h"
#include "lower/expr/build.h"

namespace strata::jit {

ArrayRef<const lower::KernelDesc*> descriptions(std::string_view kernel) {
  using Table = std::unordered_map<std::string_view, std::vector<const lower::KernelDesc*>>;
  static const Table& table = *[] {
    auto* made = new Table;
    for (int64_t k = 0; k < lower::table_kernel_count; ++k)
      (*made)[lower::table_kernels[k].name].push_back(&lower::table_kernels[k]);
    return made;
  }();
  const auto at = table.find(kernel);
  if (at != table.end()) return {at->second.data(), at->second.size()};
  return lower::added_descriptions(kernel);
}

namespace {

bool jumps(const lower::Graph& g, const lower::Kernel& k) {
  using lower::Op;
  if (std::any_of(k.outputs.begin(), k.outputs.end(), [](const lower::Operand& o) { return !is_float(o.storage); }))
    return true;
  for (const lower::Reduction& r : g.reductions)
    if (r.combine == lower::Combine::ArgMax || r.combine == lower::Combine::ArgMin) return true;
  // What each value is computed from: operands, scalars, results of reductions, its place.
  std::vector<uint64_t> from(g.nodes.size());
  for (size_t v = 0; v < from.size(); ++v) {
    const lower::Node& n = g.nodes[v];
    if (n.op == Op::Load) from[v] = uint64_t(1) << n.imm % 32;
    if (n.op == Op::Param) from[v] = uint64_t(1) << (32 + n.imm % 16);
    if (n.op == Op::Reduced) from[v] = uint64_t(1) << (48 + n.imm % 8);
    if (n.op == Op::Index) from[v] = uint64_t(1) << 63;
    for (int a : n.arg)
      if (a >= 0) from[v] |= from[size_t(a)];
    if (n.op >= Op::Floor && n.op <= Op::Rint) return true;
    if (n.op == Op::Call && lower::Helper(n.imm) != lower::Helper::Pow) return true;
    if (n.op >= Op::Eq && n.op <= Op::Ge) {
      const uint64_t a = from[size_t(n.arg[0])], b = from[size_t(n.arg[1])];
      if (a && b && a != b) return true;
    }
  }
  return false;
}

std::unique_ptr<const Piece> make(const lower::KernelDesc& desc, DType dtype, bool elsewhere) {
  lower::Builder builder(desc, dtype);
  builder.g.portable = builder.streams = elsewhere;
  auto made = std::make_unique<Piece>();
  made->outputs = builder.build();
  made->unrounded = std::move(builder.unrounded);
  made->kernel = builder.kernel();
  made->graph = std::move(builder.g);
  const bool alone = std::any_of(made->graph.nodes.begin(), made->graph.nodes.end(),
                                 [](const lower::Node& n) { return n.op == lower::Op::Call && n.takes_status(); });
  if (alone || !made->graph.carries.empty()) return nullptr;
  made->jumps = jumps(made->graph, made->kernel);
  return made;
}

}  // namespace

const Piece* piece(std::string_view kernel, DType dtype, bool elsewhere) {
  // Never destroyed: graphs may be compiled while the process ends.
  static auto& lock = *new std::mutex;
  static auto& known = *new std::map<std::tuple<std::string_view, DType, bool>, std::unique_ptr<const Piece>>;
  for (const lower::KernelDesc* desc : descriptions(kernel)) {
    if (!(desc->dtypes >> int(dtype) & 1) || desc->kind == lower::KernelKind::Space) continue;
    std::lock_guard<std::mutex> hold(lock);
    const auto [at, fresh] = known.try_emplace({desc->name, dtype, elsewhere});
    if (fresh) at->second = make(*desc, dtype, elsewhere);
    return at->second.get();
  }
  return nullptr;
}

std::vector<char> needed(const lower::Graph& g, const std::vector<std::array<int, 2>>& outputs) {
  std::vector<char> used(g.nodes.size());
  auto mark = [&](int v) {
    if (v >= 0) used[size_t(v)] = true;
  };
  for (const auto& o : outputs)
    for (int v : o) mark(v);
  for (size_t v = used.size(); v-- > 0;) {
    if (!used[v]) continue;
    for (int a : g.node(int(v)).arg) mark(a);
    if (g.node(int(v)).op == lower::Op::Reduced)
      for (int a : g.reductions[g.node(int(v)).imm].reads()) mark(a);
  }
  return used;
}

}  // namespace strata::jit
