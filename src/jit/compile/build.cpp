// From groups to kernels that run: text, compiled, and the steps that call them.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <unistd.h>

#include "jit/compile/plan.h"
#include "run/isa.h"
#include "run/kernels.h"

namespace strata::jit {

namespace {

// The operators that a kernel does the work of, one a line.
std::string summary(const LaunchList& list, const Group& g) {
  std::string out;
  for (int i : g.launches) {
    const Launch& l = list.launches[size_t(i)];
    out += (out.empty() ? "" : "\n") + std::string(l.node ? l.node->op->name : l.name);
  }
  return out;
}

}  // namespace

void Plan::compile() {
  const auto isa = lower::Isa(eager::current_isa());
  std::map<std::string, int> known;
  for (Group& g : groups_) {
    source_of_.push_back(-1);
    if (!g.fused) continue;
    g.fused->kernel.source = "fused";
    g.fused->kernel.text = summary(list_, g);
    const std::string text = lower::print_file("fused", {g.fused->kernel}, isa);
    auto [at, fresh] = known.emplace(text, int(sources_.size()));
    if (fresh) sources_.push_back(text);
    source_of_.back() = at->second;
  }
  std::vector<const StrataKernelFile*> files;
  for (const std::string& text : sources_) {
    char name[] = "/tmp/strata_XXXXXX";
    close(mkstemp(name));
    const std::string c = std::string(name) + ".c", so = std::string(name) + ".so";
    std::ofstream(c) << text;
    std::string cmd = "clang-19 -shared -o " + so + " " + lower::kCompileFlags + " " + lower::isa_flags(isa) + " " + c + " -lm";
    if (std::system(cmd.c_str())) throw_error(ErrorKind::Runtime, "compile failed: " + c);
    void* lib = dlopen(so.c_str(), RTLD_NOW);
    STRATA_CHECK(lib, "dlopen ", dlerror());
    files.push_back(static_cast<const StrataKernelFile*>(
        dlsym(lib, (std::string("strata_kernels_") + lower::isa_name(isa) + "_fused").c_str())));
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const StrataKernelEntry* entry = source_of_[g] < 0 ? nullptr : &files[size_t(source_of_[g])]->entries[0];
    steps_.push_back(step_of(int(g), entry));
  }
}

std::string Plan::source() const {
  std::string out;
  for (const std::string& s : sources_) out += (out.empty() ? "" : "\n") + s;
  return out;
}

std::string Plan::explain() const {
  std::string out = str_cat(kernels(), " fused kernels, ", groups_.size() - kernels(), " launches and calls alone\n");
  for (const Group& g : groups_) {
    out += g.fused ? str_cat("kernel over ", g.fused->shape, g.fused->reduced.empty() ? "" : str_cat(" by rows, reducing dims ", g.fused->reduced), ":\n")
                   : std::string("alone:\n");
    for (int i : g.launches) {
      const Launch& l = list_.launches[size_t(i)];
      out += "  " + std::string(l.node ? l.node->op->name : l.name);
      if (l.node && !l.node->span.empty()) out += "  # " + l.node->span;
      out += "\n";
    }
    out += "  (begins anew: " + g.alone + ")\n";
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
