#include "jit/compile/piece.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

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
  if (at == table.end()) return {};
  return {at->second.data(), at->second.size()};
}

namespace {

std::unique_ptr<const Piece> make(const lower::KernelDesc& desc, DType dtype) {
  lower::Builder builder(desc, dtype);
  auto made = std::make_unique<Piece>();
  made->outputs = builder.build();
  made->kernel = builder.kernel();
  made->graph = std::move(builder.g);
  const bool alone = std::any_of(made->graph.nodes.begin(), made->graph.nodes.end(),
                                 [](const lower::Node& n) { return n.op == lower::Op::Call && n.takes_status(); });
  if (alone || !made->graph.carries.empty()) return nullptr;
  return made;
}

}  // namespace

const Piece* piece(std::string_view kernel, DType dtype) {
  // Never destroyed: graphs may be compiled while the process ends.
  static auto& lock = *new std::mutex;
  static auto& known = *new std::map<std::pair<std::string_view, DType>, std::unique_ptr<const Piece>>;
  for (const lower::KernelDesc* desc : descriptions(kernel)) {
    if (!(desc->dtypes >> int(dtype) & 1) || desc->kind == lower::KernelKind::Space) continue;
    std::lock_guard<std::mutex> hold(lock);
    const auto [at, fresh] = known.try_emplace({desc->name, dtype});
    if (fresh) at->second = make(*desc, dtype);
    return at->second.get();
  }
  return nullptr;
}

}  // namespace strata::jit
