// From groups to kernels that run: text, compiled, and the steps that call them; and what people are told of it.
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

std::string Plan::source() const {
  std::string out;
  for (const ProgramRef& p : programs_) out += (out.empty() ? "" : "\n") + p->text();
  return out;
}

std::string Plan::explain() const {
  std::string out = str_cat(kernels(), " fused kernels, ", groups_.size() - kernels(), " operators by themselves\n");
  if (!without_compiler_.empty()) out += "not fused: " + without_compiler_ + "\n";
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (g.fused) {
      const Origin& o = origins_[size_t(source_of_[i])];
      out += str_cat("kernel over ", g.fused->shape,
                     g.fused->reduced.empty() ? "" : str_cat(", rows along dims ", g.fused->reduced), ", reads ",
                     g.fused->ins.size(), ", writes ", g.fused->outs.size(), "; from ", how_name(o.how), " in ", o.ms,
                     " ms\n");
    } else {
      out += "by itself\n";
    }
    for (int k : g.launches) {
      const Launch& l = list_.launches[size_t(k)];
      out += "  " + std::string(l.node ? l.node->op->name : l.name);
      if (l.node && !l.node->span.empty()) out += "  # " + l.node->span;
      out += "\n";
    }
    if (i) out += "  not one with what is before it: " + g.alone + "\n";
  }
  return out;
}

std::string Plan::memory() const {
  std::string out = str_cat("arena of ", arena_, " bytes (", unshared_, " without reuse)\n");
  for (size_t b = 0; b < place_.size(); ++b)
    if (place_[b] >= 0) out += str_cat("  b", b, ": ", list_.blocks[b].bytes, " bytes at ", place_[b], "\n");
  return out;
}

}  // namespace strata::jit
