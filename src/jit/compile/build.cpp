// From groups to kernels that run: text, compiled, and the steps that call them.
#include <map>
#include <mutex>

#include "jit/compile/plan.h"
#include "jit/service/compile.h"
#include "run/isa.h"

namespace strata::jit {

namespace {

constexpr const char* kName = "fused";

// The operators that a kernel does the work of. No lines of the user's: equal kernels have equal texts.
std::string summary(const LaunchList& list, const Group& g) {
  std::string out;
  for (int i : g.launches) {
    const Launch& l = list.launches[size_t(i)];
    out += (out.empty() ? "" : ", ") + std::string(l.node ? l.node->op->name : l.name);
  }
  return out;
}

}  // namespace

void Plan::compile() {
  const auto isa = lower::Isa(eager::current_isa());
  std::map<std::string, int> known;
  std::vector<Request> requests;
  for (Group& g : groups_) {
    source_of_.push_back(-1);
    if (!g.fused) continue;
    g.fused->kernel.source = kName;
    g.fused->kernel.text = summary(list_, g);
    std::string text = lower::print_file(kName, {g.fused->kernel}, isa);
    auto [at, fresh] = known.emplace(text, int(requests.size()));
    if (fresh) requests.push_back({std::move(text), isa});
    source_of_.back() = at->second;
  }
  if (!requests.empty()) {
    try {
      programs_ = compile_all({requests.data(), requests.size()}, &origins_);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::NotImplemented) throw;
      without_compiler_ = e.what();
      static std::once_flag once;
      std::call_once(once, [&] {
        warn(str_cat("compile: kernels are not fused, each operator runs its own: ", without_compiler_));
      });
      for (Group& g : groups_) g.fused.reset();
    }
  }
  const std::string table = str_cat("strata_kernels_", lower::isa_name(isa), "_", kName);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const StrataKernelEntry* entry = nullptr;
    if (groups_[g].fused)
      entry = static_cast<const StrataKernelFile*>(programs_[size_t(source_of_[g])]->symbol(table))->entries;
    steps_.push_back(step_of(int(g), entry));
  }
}

}  // namespace strata::jit
