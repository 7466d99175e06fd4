// From groups to kernels that run: text, compiled, and the steps that call them.
#include <atomic>
#include <map>
#include <mutex>

#include "core/parallel.h"
#include "jit/compile/lines.h"
#include "jit/compile/plan.h"
#include "jit/compile/rows.h"
#include "jit/compile/texts.h"
#include "jit/service/compile.h"
#include "run/isa.h"

namespace strata::jit {

namespace {
constexpr const char* kName = "fused";
}

// The operators that a kernel does the work of. No lines of the user's: equal kernels have equal texts.
std::string operators_of(const LaunchList& list, const Group& g) {
  std::string out;
  for (int i : g.launches) {
    const Launch& l = list.launches[size_t(i)];
    out += (out.empty() ? "" : ", ") + l.operator_name();
  }
  return out;
}

void Plan::find_programs(ArrayRef<Plan*> plans) {
  const auto isa = lower::Isa(eager::current_isa());
  std::map<std::string, int> known;
  std::vector<Request> requests;
  struct Printed {
    lower::Kernel* kernel;
    int* source;
    std::string text;
  };
  std::vector<Printed> printed;
  for (Plan* p : plans) {
    p->source_of_.assign(p->groups_.size(), -1);
    for (size_t i = 0; i < p->groups_.size(); ++i) {
      Group& g = p->groups_[i];
      if (!g.fused) continue;
      g.fused->kernel.source = kName;
      g.fused->kernel.text = operators_of(p->list_, g);
      // A kernel of another numerics is another text, and so another key of the cache.
      if (g.fused->dropped[0] + g.fused->dropped[1]) g.fused->kernel.text += "; numerics=\"fast\"";
      if (p->kept_) continue;
      find_row_values(*g.fused);
      if (p->options_.lines) g.fused->kernel.lines = source_lines(p->list_, g);
      printed.push_back({&g.fused->kernel, &p->source_of_[i], {}});
    }
  }
  // About half a millisecond each: few are not worth a start of threads.
  const int64_t count = int64_t(printed.size()), few = threads_started() ? 1 : 8;
  parallel_for(0, count, few, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) printed[size_t(i)].text = text_of(kName, *printed[size_t(i)].kernel, isa);
  });
  for (Printed& p : printed) {
    auto [at, fresh] = known.emplace(p.text, int(requests.size()));
    if (fresh) requests.push_back({std::move(p.text), isa, !p.kernel->lines.empty()});
    *p.source = at->second;
  }
  std::vector<ProgramRef> programs;
  std::vector<Origin> origins;
  if (!requests.empty()) {
    try {
      programs = compile_all({requests.data(), requests.size()}, &origins);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::NotImplemented && e.kind() != ErrorKind::Runtime) throw;  // no compiler, or it fails
      const std::string why = e.what();
      static std::atomic<bool> told{false};
      if (!told.exchange(true)) warn(str_cat("compile: kernels are not fused, each operator runs its own: ", why));
      for (Plan* p : plans) {
        p->without_compiler_ = why;
        for (Group& g : p->groups_) g.fused.reset();
      }
    }
  }
  const std::string table = str_cat("strata_kernels_", lower::isa_name(isa), "_", kName);
  for (Plan* p : plans) {
    if (!p->kept_) {
      p->kept_.emplace();
      bool news = false;  // kernels that this process did not have: other sizes of a graph have none
      for (size_t g = 0; g < p->groups_.size(); ++g) {
        const size_t source = size_t(p->source_of_[g]);
        const bool made = p->groups_[g].fused.has_value();
        p->kept_->programs.push_back(made ? programs[source] : nullptr);
        p->kept_->origins.push_back(made ? origins[source] : Origin());
        news |= made && origins[source].how != How::Memory;
      }
      if (news && !p->key_.empty())
        keep_plan(p->list_, p->key_, p->groups_, {p->kept_->programs.data(), p->kept_->programs.size()});
    }
    // A plan numbers its own programs.
    std::map<const Program*, int> number;
    for (size_t g = 0; g < p->groups_.size(); ++g) {
      const StrataKernelEntry* entry = nullptr;
      if (p->groups_[g].fused) {
        const ProgramRef& program = p->kept_->programs[g];
        entry = static_cast<const StrataKernelFile*>(program->symbol(table))->entries;
        const auto [at, fresh] = number.emplace(program.get(), int(p->programs_.size()));
        if (fresh) {
          p->programs_.push_back(program);
          p->origins_.push_back(p->kept_->origins[g]);
        }
        p->source_of_[g] = at->second;
      }
      p->steps_.push_back(p->step_of(int(g), entry));
    }
    p->kept_.reset();
    p->key_ = {};
  }
}

}  // namespace strata::jit
